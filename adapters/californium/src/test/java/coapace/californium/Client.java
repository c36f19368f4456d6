package coapace.californium;

import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

import org.eclipse.californium.core.coap.MessageObserverAdapter;
import org.eclipse.californium.core.coap.Request;
import org.eclipse.californium.core.coap.Response;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.config.UdpConfig;

/**
 * {@code Client MECHANISM HOST PORT COUNT CLIENTS}: each of the clients, with an endpoint and a socket of its own, sends so many
 * confirmable GETs of the path {@code /}, one after another. For every request that ends it prints
 * {@code CLIENT MILLISECONDS ok|failed}. The mechanism {@code stock} is Californium as it ships.
 */
public final class Client {

    private final int number;
    private final CoapEndpoint endpoint;
    private final String uri;
    private final CountDownLatch ended;
    private int left;

    private Client(int number, CoapEndpoint endpoint, String uri, int count, CountDownLatch ended) {
        this.number = number;
        this.endpoint = endpoint;
        this.uri = uri;
        this.ended = ended;
        left = count;
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length != 5) {
            System.err.println("usage: Client MECHANISM HOST PORT COUNT CLIENTS");
            System.exit(2);
        }
        CoapConfig.register();
        UdpConfig.register();
        Configuration config = Configuration.createStandardWithoutFile();
        boolean isStock = arguments[0].equals("stock");
        if (!isStock) {
            config.set(CoapConfig.TOKEN_SIZE_LIMIT, 7);
        }
        ScheduledExecutorService executor = Executors.newScheduledThreadPool(2);
        int clients = Integer.parseInt(arguments[4]);
        CountDownLatch ended = new CountDownLatch(clients);
        List<Client> all = new ArrayList<>();
        for (int i = 0; i < clients; i++) {
            CoapEndpoint.Builder builder = CoapEndpoint.builder().setConfiguration(config)
                    .setInetSocketAddress(new InetSocketAddress(0));
            if (!isStock) {
                builder.setCoapStackFactory(new CoapaceStackFactory(arguments[0]));
            }
            CoapEndpoint endpoint = builder.build();
            endpoint.setExecutors(executor, executor);
            endpoint.start();
            String uri = "coap://" + arguments[1] + ":" + arguments[2] + "/";
            all.add(new Client(i, endpoint, uri, Integer.parseInt(arguments[3]), ended));
        }
        all.forEach(Client::next);
        ended.await();
        all.forEach(client -> client.endpoint.destroy());
        executor.shutdownNow();
        executor.awaitTermination(5, TimeUnit.SECONDS);
    }

    private void next() {
        if (left-- == 0) {
            ended.countDown();
            return;
        }
        long began = System.nanoTime();
        AtomicBoolean isOver = new AtomicBoolean();
        Request request = Request.newGet();
        request.setURI(uri);
        request.addMessageObserver(new MessageObserverAdapter() {

            @Override
            public void onResponse(Response response) {
                end("ok");
            }

            @Override
            public void onCancel() {
                end("failed");
            }

            @Override
            protected void failed() {
                end("failed");
            }

            private void end(String how) {
                if (isOver.compareAndSet(false, true)) {
                    // One call, so that lines of other threads do not mix with it.
                    System.out.println(String.format(Locale.ROOT, "%d %.3f %s", number, (System.nanoTime() - began) / 1e6, how));
                    System.out.flush();
                    next();
                }
            }
        });
        request.send(endpoint);
    }
}
