import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.eclipse.californium.core.CoapResource;
import org.eclipse.californium.core.CoapServer;
import org.eclipse.californium.core.coap.CoAP.Code;
import org.eclipse.californium.core.coap.CoAP.ResponseCode;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.core.network.Exchange;
import org.eclipse.californium.core.server.resources.CoapExchange;
import org.eclipse.californium.core.server.resources.Resource;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.config.TcpConfig;
import org.eclipse.californium.elements.tcp.netty.TcpServerConnector;
import org.eclipse.californium.scandium.DTLSConnector;
import org.eclipse.californium.scandium.config.DtlsConfig;
import org.eclipse.californium.scandium.config.DtlsConnectorConfig;
import org.eclipse.californium.scandium.dtls.cipher.CipherSuite;
import org.eclipse.californium.scandium.dtls.pskstore.AdvancedMultiPskStore;

/** Server PORT IDENTITY KEY: the resources of evidence/interop with Californium, over UDP and TCP, and over DTLS at the next port. */
public final class Server {
    /** A resource that passes every method to one function. */
    private static final class Simple extends CoapResource {
        private final Consumer<CoapExchange> answer;

        Simple(String name, Consumer<CoapExchange> answer) {
            super(name);
            this.answer = answer;
        }

        @Override
        public void handleRequest(Exchange exchange) {
            answer.accept(new CoapExchange(exchange));
        }
    }

    /** Seconds since 1970; observers are notified every second. */
    private static final class Clock extends CoapResource {
        Clock() {
            super("clock");
            setObservable(true);
            getAttributes().setObservable();
            new Timer(true).schedule(new TimerTask() {
                @Override
                public void run() {
                    changed();
                }
            }, 1000, 1000);
        }

        @Override
        public void handleGET(CoapExchange exchange) {
            exchange.respond(ResponseCode.CONTENT, Long.toString(System.currentTimeMillis() / 1000));
        }
    }

    /** The values that were put, by name. */
    private static final class Store extends CoapResource {
        private final Map<String, byte[]> stored = new ConcurrentHashMap<>();

        Store() {
            super("store");
        }

        @Override
        public Resource getChild(String name) {
            return new Simple(name, exchange -> answer(name, exchange));
        }

        private void answer(String name, CoapExchange exchange) {
            if (exchange.getRequestCode() == Code.PUT) {
                byte[] before = stored.put(name, exchange.getRequestPayload());
                exchange.respond(before == null ? ResponseCode.CREATED : ResponseCode.CHANGED);
            } else if (exchange.getRequestCode() == Code.DELETE) {
                stored.remove(name);
                exchange.respond(ResponseCode.DELETED);
            } else if (stored.containsKey(name)) {
                exchange.respond(ResponseCode.CONTENT, stored.get(name));
            } else {
                exchange.respond(ResponseCode.NOT_FOUND);
            }
        }
    }

    private static int argument(CoapExchange exchange, String name, int otherwise) {
        String text = exchange.getQueryParameter(name);
        return text == null ? otherwise : Integer.parseInt(text);
    }

    private static byte[] large(int size) {
        StringBuilder text = new StringBuilder();
        for (int offset = 0; offset < size; offset += 64) {
            text.append(String.format("%-63d\n", offset));
        }
        return text.substring(0, size).getBytes(StandardCharsets.US_ASCII);
    }

    private static void delayed(CoapExchange exchange) {
        int seconds = argument(exchange, "s", 5);
        exchange.accept();
        new Timer(true).schedule(new TimerTask() {
            @Override
            public void run() {
                exchange.respond(ResponseCode.CONTENT, seconds + " s later");
            }
        }, 1000L * seconds);
    }

    public static void main(String[] arguments) {
        CoapConfig.register();
        DtlsConfig.register();
        TcpConfig.register();
        Configuration configuration = Configuration.createStandardWithoutFile();
        configuration.set(DtlsConfig.DTLS_ROLE, DtlsConfig.DtlsRole.SERVER_ONLY);
        configuration.setAsList(DtlsConfig.DTLS_CIPHER_SUITES, CipherSuite.TLS_PSK_WITH_AES_128_CCM_8);
        int port = Integer.parseInt(arguments[0]);
        InetSocketAddress plain = new InetSocketAddress("127.0.0.1", port);
        AdvancedMultiPskStore keys = new AdvancedMultiPskStore();
        keys.setKey(arguments[1], arguments[2].getBytes(StandardCharsets.UTF_8));
        DtlsConnectorConfig secured = DtlsConnectorConfig.builder(configuration)
                .setAddress(new InetSocketAddress("127.0.0.1", port + 1)).setAdvancedPskStore(keys).build();

        CoapServer server = new CoapServer(configuration);
        server.addEndpoint(CoapEndpoint.builder().setConfiguration(configuration).setInetSocketAddress(plain).build());
        server.addEndpoint(CoapEndpoint.builder().setConfiguration(configuration)
                .setConnector(new TcpServerConnector(plain, configuration)).build());
        server.addEndpoint(CoapEndpoint.builder().setConfiguration(configuration)
                .setConnector(new DTLSConnector(secured)).build());

        AtomicInteger count = new AtomicInteger();
        server.add(
                new Simple("hello", exchange -> exchange.respond(ResponseCode.CONTENT, "Hello")),
                new Simple("echo", exchange -> exchange.respond(
                        exchange.getRequestCode() == Code.FETCH ? ResponseCode.CONTENT : ResponseCode.CHANGED,
                        exchange.getRequestPayload())),
                new Simple("delayed", Server::delayed),
                new Simple("large", exchange -> exchange.respond(ResponseCode.CONTENT, large(argument(exchange, "bytes", 8192)))),
                new Simple("counter", exchange -> {
                    if (exchange.getRequestCode() == Code.POST) {
                        exchange.respond(ResponseCode.CHANGED, Integer.toString(count.incrementAndGet()));
                    } else {
                        exchange.respond(ResponseCode.CONTENT, count.toString());
                    }
                }),
                new Clock(), new Store());
        server.start();
        System.out.println("ready");
    }
}
