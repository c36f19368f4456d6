import java.net.InetSocketAddress;
import java.net.URI;
import java.util.Collection;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

import coapace.californium.CoapaceStackFactory;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.leshan.client.LeshanClient;
import org.eclipse.leshan.client.LeshanClientBuilder;
import org.eclipse.leshan.client.californium.endpoint.CaliforniumClientEndpointsProvider;
import org.eclipse.leshan.client.californium.endpoint.coap.CoapClientEndpointFactory;
import org.eclipse.leshan.client.californium.endpoint.coap.CoapClientProtocolProvider;
import org.eclipse.leshan.client.object.Device;
import org.eclipse.leshan.client.object.Security;
import org.eclipse.leshan.client.object.Server;
import org.eclipse.leshan.client.resource.ObjectsInitializer;
import org.eclipse.leshan.client.servers.ServerInfo;
import org.eclipse.leshan.core.LwM2mId;
import org.eclipse.leshan.core.observation.Observation;
import org.eclipse.leshan.core.request.ReadRequest;
import org.eclipse.leshan.core.response.ReadResponse;
import org.eclipse.leshan.server.LeshanServer;
import org.eclipse.leshan.server.LeshanServerBuilder;
import org.eclipse.leshan.server.californium.endpoint.CaliforniumServerEndpointsProvider;
import org.eclipse.leshan.server.californium.endpoint.coap.CoapServerEndpointFactory;
import org.eclipse.leshan.server.californium.endpoint.coap.CoapServerProtocolProvider;
import org.eclipse.leshan.server.registration.Registration;
import org.eclipse.leshan.server.registration.RegistrationListener;
import org.eclipse.leshan.server.registration.RegistrationUpdate;

/**
 * {@code Demo MECHANISM PORT URI COUNT}: a server of LwM2M at PORT of 127.0.0.1, and a client that registers with it at URI, both of
 * Leshan. The server reads a resource of the client COUNT times, and prints how many milliseconds each took. The mechanism
 * {@code stock} is Leshan as it ships.
 */
public final class Demo {

    public static void main(String[] arguments) throws Exception {
        String mechanism = arguments[0];
        URI local = new URI("coap://127.0.0.1:" + arguments[1]);
        CompletableFuture<Registration> registered = new CompletableFuture<>();
        LeshanServer server = server(mechanism, local);
        server.getRegistrationService().addListener(new RegistrationListener() {

            @Override
            public void registered(Registration registration, Registration previous, Collection<Observation> observations) {
                registered.complete(registration);
            }

            @Override
            public void updated(RegistrationUpdate update, Registration updated, Registration previous) {
            }

            @Override
            public void unregistered(Registration registration, Collection<Observation> observations, boolean isExpired,
                    Registration replacement) {
            }
        });
        server.start();
        LeshanClient client = client(mechanism, arguments[2]);
        client.start();
        Registration registration = registered.get(120, TimeUnit.SECONDS);
        for (int i = 0; i < Integer.parseInt(arguments[3]); i++) {
            long began = System.nanoTime();
            ReadResponse response = server.send(registration, new ReadRequest(LwM2mId.DEVICE, 0, 0), 300_000);
            boolean isRight = response != null && response.isSuccess() && response.getContent().toString().contains("Coapace");
            System.out.printf("%.3f %s%n", (System.nanoTime() - began) / 1e6, isRight ? "ok" : "failed");
        }
        System.exit(0); // without the deregistration
    }

    private static LeshanServer server(String mechanism, URI uri) {
        CoapServerEndpointFactory factory = new CoapServerEndpointFactory(uri, null, null, builder -> {
            if (!mechanism.equals("stock")) {
                builder.setCoapStackFactory(new CoapaceStackFactory(mechanism));
            }
        });
        CaliforniumServerEndpointsProvider.Builder endpoints = new CaliforniumServerEndpointsProvider.Builder(
                new CoapServerProtocolProvider());
        Configuration config = endpoints.createDefaultConfiguration();
        config.set(CoapConfig.TOKEN_SIZE_LIMIT, 7);
        endpoints.setConfiguration(config).addEndpoint(factory);
        return new LeshanServerBuilder().setEndpointsProviders(endpoints.build()).build();
    }

    private static LeshanClient client(String mechanism, String uri) {
        ObjectsInitializer objects = new ObjectsInitializer();
        objects.setInstancesForObject(LwM2mId.SECURITY, Security.noSec(uri, 1));
        objects.setInstancesForObject(LwM2mId.SERVER, new Server(1, 300));
        objects.setInstancesForObject(LwM2mId.DEVICE, new Device("Coapace", "demo", "1"));
        CoapClientEndpointFactory factory = new CoapClientEndpointFactory() {
            @Override
            protected CoapEndpoint.Builder createEndpointBuilder(InetSocketAddress address, ServerInfo server,
                    Configuration config) {
                CoapEndpoint.Builder builder = super.createEndpointBuilder(address, server, config);
                return mechanism.equals("stock") ? builder : builder.setCoapStackFactory(new CoapaceStackFactory(mechanism));
            }
        };
        CaliforniumClientEndpointsProvider.Builder endpoints = new CaliforniumClientEndpointsProvider.Builder(
                new CoapClientProtocolProvider() {
                    @Override
                    public CoapClientEndpointFactory createDefaultEndpointFactory() {
                        return factory;
                    }
                });
        Configuration config = endpoints.createDefaultConfiguration();
        config.set(CoapConfig.TOKEN_SIZE_LIMIT, 7);
        endpoints.setConfiguration(config);
        return new LeshanClientBuilder("demo").setObjects(objects.createAll()).setEndpointsProviders(endpoints.build()).build();
    }
}
