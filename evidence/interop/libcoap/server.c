/* server PORT IDENTITY KEY: the resources of evidence/interop with libcoap, over UDP and TCP, and over DTLS and TLS at the next port. */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <coap3/coap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_STORED 64

/* The values that were put, by path; an entry without a path is free. */
static struct stored {
    char path[64];
    uint8_t *bytes;
    size_t length;
} stored[MAX_STORED];

static unsigned count;
static coap_bin_const_t identity, key;

static void release(coap_session_t *session, void *bytes) {
    (void)session;
    free(bytes);
}

/* Answers with a copy of these bytes, in blocks if necessary. */
static void answer(coap_resource_t *resource, coap_session_t *session, const coap_pdu_t *request, const coap_string_t *query,
                   coap_pdu_t *response, const uint8_t *bytes, size_t length) {
    uint8_t *copy = malloc(length + 1);
    if (!copy) {
        coap_pdu_set_code(response, COAP_RESPONSE_CODE_INTERNAL_ERROR);
        return;
    }
    if (length > 0) memcpy(copy, bytes, length);
    coap_add_data_large_response(resource, session, request, response, query, COAP_MEDIATYPE_TEXT_PLAIN, -1, 0, length, copy,
                                 release, copy);
}

/* Returns the number after "NAME=" in the query. */
static size_t argument(const coap_string_t *query, const char *name, size_t otherwise) {
    size_t length = strlen(name);
    if (!query || query->length < length || memcmp(query->s, name, length) != 0) return otherwise;
    return strtoul((const char *)query->s + length, NULL, 10);
}

static void hello(coap_resource_t *resource, coap_session_t *session, const coap_pdu_t *request, const coap_string_t *query,
                  coap_pdu_t *response) {
    coap_pdu_set_code(response, COAP_RESPONSE_CODE_CONTENT);
    answer(resource, session, request, query, response, (const uint8_t *)"Hello", 5);
}

static void echo(coap_resource_t *resource, coap_session_t *session, const coap_pdu_t *request, const coap_string_t *query,
                 coap_pdu_t *response) {
    size_t length = 0, offset, total;
    const uint8_t *bytes = NULL;
    coap_get_data_large(request, &length, &bytes, &offset, &total);
    int fetched = coap_pdu_get_code(request) == COAP_REQUEST_CODE_FETCH;
    coap_pdu_set_code(response, fetched ? COAP_RESPONSE_CODE_CONTENT : COAP_RESPONSE_CODE_CHANGED);
    answer(resource, session, request, query, response, bytes, length);
}

static void delayed(coap_resource_t *resource, coap_session_t *session, const coap_pdu_t *request, const coap_string_t *query,
                    coap_pdu_t *response) {
    size_t seconds = argument(query, "s=", 5);
    if (!coap_find_async(session, coap_pdu_get_token(request))) {
        /* Acknowledged now; libcoap calls the handler again when the time has passed. */
        coap_register_async(session, request, seconds * COAP_TICKS_PER_SECOND);
        return;
    }
    char text[32];
    int length = snprintf(text, sizeof text, "%zu s later", seconds);
    coap_pdu_set_code(response, COAP_RESPONSE_CODE_CONTENT);
    answer(resource, session, request, query, response, (const uint8_t *)text, (size_t)length);
}

static void large(coap_resource_t *resource, coap_session_t *session, const coap_pdu_t *request, const coap_string_t *query,
                  coap_pdu_t *response) {
    static char text[1 << 16];
    size_t size = argument(query, "bytes=", 8192);
    if (size > sizeof text - 65) {
        coap_pdu_set_code(response, COAP_RESPONSE_CODE_BAD_REQUEST);
        return;
    }
    for (size_t offset = 0; offset < size; offset += 64) snprintf(text + offset, 65, "%-63zu\n", offset);
    coap_pdu_set_code(response, COAP_RESPONSE_CODE_CONTENT);
    answer(resource, session, request, query, response, (const uint8_t *)text, size);
}

static void counter(coap_resource_t *resource, coap_session_t *session, const coap_pdu_t *request, const coap_string_t *query,
                    coap_pdu_t *response) {
    int posted = coap_pdu_get_code(request) == COAP_REQUEST_CODE_POST;
    count += posted;
    char text[16];
    int length = snprintf(text, sizeof text, "%u", count);
    coap_pdu_set_code(response, posted ? COAP_RESPONSE_CODE_CHANGED : COAP_RESPONSE_CODE_CONTENT);
    answer(resource, session, request, query, response, (const uint8_t *)text, (size_t)length);
}

static void tell_time(coap_resource_t *resource, coap_session_t *session, const coap_pdu_t *request, const coap_string_t *query,
                      coap_pdu_t *response) {
    char text[32];
    int length = snprintf(text, sizeof text, "%lld", (long long)time(NULL));
    coap_pdu_set_code(response, COAP_RESPONSE_CODE_CONTENT);
    answer(resource, session, request, query, response, (const uint8_t *)text, (size_t)length);
}

/* Returns the entry of a path, or a free one if there is none, or NULL. */
static struct stored *find(const coap_string_t *path) {
    struct stored *empty = NULL;
    for (struct stored *each = stored; each < stored + MAX_STORED; each++) {
        if (!*each->path) {
            empty = each;
        } else if (strlen(each->path) == path->length && memcmp(each->path, path->s, path->length) == 0) {
            return each;
        }
    }
    return empty;
}

/* Handles every path without a resource of its own. */
static void store(coap_resource_t *resource, coap_session_t *session, const coap_pdu_t *request, const coap_string_t *query,
                  coap_pdu_t *response) {
    coap_string_t *path = coap_get_uri_path(request);
    struct stored *entry = path && path->length < sizeof entry->path ? find(path) : NULL;
    size_t length = 0, offset, total;
    const uint8_t *bytes = NULL;
    coap_get_data_large(request, &length, &bytes, &offset, &total);
    if (!entry) {
        coap_pdu_set_code(response, COAP_RESPONSE_CODE_INTERNAL_ERROR);
    } else if (coap_pdu_get_code(request) == COAP_REQUEST_CODE_PUT) {
        coap_pdu_set_code(response, *entry->path ? COAP_RESPONSE_CODE_CHANGED : COAP_RESPONSE_CODE_CREATED);
        memcpy(entry->path, path->s, path->length);
        free(entry->bytes);
        entry->bytes = malloc(length + 1);
        entry->length = entry->bytes ? length : 0;
        if (entry->length > 0) memcpy(entry->bytes, bytes, length);
    } else if (coap_pdu_get_code(request) == COAP_REQUEST_CODE_DELETE) {
        free(entry->bytes);
        memset(entry, 0, sizeof *entry);
        coap_pdu_set_code(response, COAP_RESPONSE_CODE_DELETED);
    } else if (*entry->path) {
        coap_pdu_set_code(response, COAP_RESPONSE_CODE_CONTENT);
        answer(resource, session, request, query, response, entry->bytes, entry->length);
    } else {
        coap_pdu_set_code(response, COAP_RESPONSE_CODE_NOT_FOUND);
    }
    coap_delete_string(path);
}

static const coap_bin_const_t *key_of(coap_bin_const_t *named, coap_session_t *session, void *unused) {
    (void)session, (void)unused;
    return coap_binary_equal(named, &identity) ? &key : NULL;
}

static coap_resource_t *serve(coap_context_t *context, const char *path, coap_method_handler_t handler) {
    coap_resource_t *resource = coap_resource_init(coap_make_str_const(path), 0);
    for (coap_request_t method = COAP_REQUEST_GET; method <= COAP_REQUEST_IPATCH; method++) {
        coap_register_request_handler(resource, method, handler);
    }
    coap_add_resource(context, resource);
    return resource;
}

static int listen_at(coap_context_t *context, int port, coap_proto_t protocol) {
    coap_address_t address;
    coap_address_init(&address);
    address.size = sizeof address.addr.sin;
    address.addr.sin.sin_family = AF_INET;
    address.addr.sin.sin_port = htons((uint16_t)port);
    address.addr.sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return coap_new_endpoint(context, &address, protocol) != NULL;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: server PORT IDENTITY KEY\n");
        return 2;
    }
    int port = atoi(argv[1]);
    identity = (coap_bin_const_t){strlen(argv[2]), (const uint8_t *)argv[2]};
    key = (coap_bin_const_t){strlen(argv[3]), (const uint8_t *)argv[3]};

    coap_startup();
    coap_context_t *context = coap_new_context(NULL);
    if (!context) return 1;
    coap_context_set_block_mode(context, COAP_BLOCK_USE_LIBCOAP | COAP_BLOCK_SINGLE_BODY);
    coap_dtls_spsk_t keys = {.version = COAP_DTLS_SPSK_SETUP_VERSION, .validate_id_call_back = key_of};
    keys.psk_info.key = key;
    char certificate[256], private_key[256];
    snprintf(certificate, sizeof certificate, "%s/server.pem", getenv("CERTIFICATES"));
    snprintf(private_key, sizeof private_key, "%s/server.key", getenv("CERTIFICATES"));
    coap_dtls_pki_t own = {.version = COAP_DTLS_PKI_SETUP_VERSION, .pki_key.key_type = COAP_PKI_KEY_PEM};
    own.pki_key.key.pem.public_cert = certificate;
    own.pki_key.key.pem.private_key = private_key;
    if (!coap_context_set_psk2(context, &keys) || !coap_context_set_pki(context, &own) || !listen_at(context, port, COAP_PROTO_UDP) ||
        !listen_at(context, port, COAP_PROTO_TCP) || !listen_at(context, port + 1, COAP_PROTO_DTLS) ||
        !listen_at(context, port + 1, COAP_PROTO_TLS)) {
        fprintf(stderr, "cannot listen\n");
        return 1;
    }
    serve(context, "hello", hello);
    serve(context, "echo", echo);
    serve(context, "delayed", delayed);
    serve(context, "large", large);
    serve(context, "counter", counter);
    coap_resource_t *clock = serve(context, "clock", tell_time);
    coap_resource_set_get_observable(clock, 1);
    coap_resource_t *unknown = coap_resource_unknown_init(store);
    coap_register_request_handler(unknown, COAP_REQUEST_GET, store);
    coap_register_request_handler(unknown, COAP_REQUEST_DELETE, store);
    coap_add_resource(context, unknown);
    puts("ready");
    fflush(stdout);
    for (time_t last = time(NULL); coap_io_process(context, 50) >= 0;) {
        if (time(NULL) != last) {
            last = time(NULL);
            coap_resource_notify_observers(clock, NULL);
        }
    }
    return 1;
}
