import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.eclipse.californium.core.CoapClient;
import org.eclipse.californium.core.CoapHandler;
import org.eclipse.californium.core.CoapObserveRelation;
import org.eclipse.californium.core.CoapResponse;
import org.eclipse.californium.core.coap.CoAP.Code;
import org.eclipse.californium.core.coap.MediaTypeRegistry;
import org.eclipse.californium.core.coap.Request;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.config.TcpConfig;
import org.eclipse.californium.elements.tcp.netty.TcpClientConnector;
import org.eclipse.californium.scandium.DTLSConnector;
import org.eclipse.californium.scandium.config.DtlsConfig;
import org.eclipse.californium.scandium.config.DtlsConnectorConfig;
import org.eclipse.californium.scandium.dtls.cipher.CipherSuite;
import org.eclipse.californium.scandium.dtls.pskstore.AdvancedSinglePskStore;

/** Client METHOD URI [non] [block=BYTES] [observe=N] [identity=TEXT] [key=TEXT]: one request with Californium. */
public final class Client {
    private static void show(CoapResponse response) {
        System.out.println(response.getCode() + " " + HexFormat.of().formatHex(response.getPayload()));
    }

    private static void fail(String words) {
        System.err.println(words);
        System.exit(1);
    }

    private static CoapEndpoint endpoint(String scheme, Configuration configuration, Map<String, String> flags) {
        CoapEndpoint.Builder builder = CoapEndpoint.builder().setConfiguration(configuration);
        if (scheme.equals("coaps")) {
            byte[] key = flags.get("key").getBytes(StandardCharsets.UTF_8);
            builder.setConnector(new DTLSConnector(DtlsConnectorConfig.builder(configuration)
                    .setAddress(new InetSocketAddress("127.0.0.1", 0))
                    .setAdvancedPskStore(new AdvancedSinglePskStore(flags.get("identity"), key)).build()));
        } else if (scheme.equals("coap+tcp")) {
            builder.setConnector(new TcpClientConnector(configuration));
        }
        return builder.build();
    }

    private static void follow(CoapClient client, int count) throws Exception {
        CountDownLatch left = new CountDownLatch(count);
        CoapObserveRelation relation = client.observe(new CoapHandler() {
            @Override
            public void onLoad(CoapResponse response) {
                if (left.getCount() > 0) {
                    show(response);
                }
                left.countDown();
            }

            @Override
            public void onError() {
                fail("no response");
            }
        });
        left.await();
        relation.proactiveCancel();
        Thread.sleep(500);  // until the message is acknowledged
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, String> flags = new HashMap<>();
        for (int place = 2; place < arguments.length; place++) {
            String[] parts = arguments[place].split("=", 2);
            flags.put(parts[0], parts.length > 1 ? parts[1] : "");
        }
        CoapConfig.register();
        DtlsConfig.register();
        TcpConfig.register();
        Configuration configuration = Configuration.createStandardWithoutFile();
        configuration.set(DtlsConfig.DTLS_ROLE, DtlsConfig.DtlsRole.CLIENT_ONLY);
        configuration.setAsList(DtlsConfig.DTLS_CIPHER_SUITES, CipherSuite.TLS_PSK_WITH_AES_128_CCM_8);
        int block = Integer.parseInt(flags.getOrDefault("block", "1024"));
        configuration.set(CoapConfig.PREFERRED_BLOCK_SIZE, block);
        configuration.set(CoapConfig.MAX_MESSAGE_SIZE, block);

        String uri = arguments[1];
        CoapClient client = new CoapClient(uri);
        client.setTimeout(20_000L);
        client.setEndpoint(endpoint(URI.create(uri).getScheme(), configuration, flags));
        if (flags.containsKey("block")) {
            client.useEarlyNegotiation(block);
        }
        if (arguments[0].equals("PING")) {
            if (!client.ping()) {
                fail("no pong");
            }
            System.out.println("0.00");
        } else if (flags.containsKey("observe")) {
            follow(client, Integer.parseInt(flags.get("observe")));
        } else {
            Request request = new Request(Code.valueOf(arguments[0].toUpperCase()));
            request.setConfirmable(!flags.containsKey("non"));
            byte[] payload = System.in.readAllBytes();
            if (payload.length > 0) {
                request.setPayload(payload);
                request.getOptions().setContentFormat(MediaTypeRegistry.TEXT_PLAIN);
            }
            CoapResponse response = client.advanced(request);
            if (response == null) {
                fail("no response");
            }
            show(response);
            Thread.sleep(100);  // until pending acknowledgements are sent
        }
        System.exit(0);
    }
}
