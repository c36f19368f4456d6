import java.net.InetSocketAddress;
import org.eclipse.californium.core.CoapResource;
import org.eclipse.californium.core.CoapServer;
import org.eclipse.californium.core.coap.CoAP.ResponseCode;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.core.server.resources.CoapExchange;
import org.eclipse.californium.elements.config.Configuration;

/** Server ADDRESS PORT PATH PAYLOAD: one resource, Californium's own defaults. */
public final class Server {
    public static void main(String[] arguments) {
        CoapConfig.register();
        Configuration configuration = Configuration.createStandardWithoutFile();
        CoapServer server = new CoapServer(configuration);
        server.addEndpoint(new CoapEndpoint.Builder()
                .setConfiguration(configuration)
                .setInetSocketAddress(new InetSocketAddress(arguments[0], Integer.parseInt(arguments[1])))
                .build());
        String payload = arguments[3];
        server.add(new CoapResource(arguments[2]) {
            @Override
            public void handleGET(CoapExchange exchange) {
                exchange.respond(ResponseCode.CONTENT, payload);
            }
        });
        server.start();
    }
}
