package coapace.californium;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.HashSet;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

import org.eclipse.californium.core.CoapServer;
import org.eclipse.californium.core.coap.MessageObserverAdapter;
import org.eclipse.californium.core.coap.Request;
import org.eclipse.californium.core.coap.Response;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.core.network.interceptors.MessageInterceptorAdapter;
import org.eclipse.californium.elements.UdpEndpointContext;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.util.ClockUtil;
import org.junit.Test;

/** Requests of many threads over one endpoint, with real sockets, losses and cancellations. None may be left over. */
public class ThreadsTest {

    private static final int THREADS = 8;
    private static final int EACH = 60;

    @Test
    public void everyRequestEndsAndNoPlaceIsLost() throws Exception {
        VirtualNetwork net = new VirtualNetwork(); // for its configuration, and the layer
        ClockUtil.setRealtimeHandler(System::nanoTime);
        Configuration config = net.config;
        config.set(CoapConfig.NSTART, 2);
        CoapServer server = new CoapServer(Configuration.createStandardWithoutFile());
        CoapEndpoint serving = CoapEndpoint.builder()
                .setInetSocketAddress(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0)).build();
        server.addEndpoint(serving);
        server.start();
        ScheduledExecutorService executor = Executors.newScheduledThreadPool(4);
        CoapEndpoint endpoint = CoapEndpoint.builder().setConfiguration(config)
                .setInetSocketAddress(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0))
                .setCoapStackFactory(net.keepLayer(new CoapaceStackFactory("ebb"))).build();
        endpoint.setExecutors(executor, executor);
        endpoint.addInterceptor(new MessageInterceptorAdapter() {
            private final Set<Integer> lost = new HashSet<>();

            /** Loses the first answer to every fourth request. */
            @Override
            public synchronized void receiveResponse(Response response) {
                if (response.getMID() % 4 == 0 && lost.add(response.getMID())) {
                    response.setCanceled(true);
                }
            }
        });
        endpoint.start();
        CountDownLatch ended = new CountDownLatch(THREADS * EACH);
        AtomicInteger answered = new AtomicInteger();
        try {
            for (int thread = 0; thread < THREADS; thread++) {
                Random random = new Random(thread);
                new Thread(() -> {
                    for (int i = 0; i < EACH; i++) {
                        Request request = send(endpoint, serving.getAddress(), ended, answered);
                        if (random.nextInt(10) == 0) {
                            request.cancel();
                        }
                    }
                }).start();
            }
            assertTrue(ended.getCount() + " requests are left over", ended.await(60, TimeUnit.SECONDS));
            assertTrue("" + answered, answered.get() > THREADS * EACH / 2);
            Destination destination = net.layer.destinations.find(new UdpEndpointContext(serving.getAddress()));
            for (int i = 0; i < 100 && !destination.isIdle(); i++) {
                Thread.sleep(10); // the application learns of an answer a little sooner
            }
            assertTrue(destination.isIdle());
            assertEquals(0, net.layer.marks.size());
        } finally {
            endpoint.destroy();
            server.destroy();
            executor.shutdownNow();
        }
    }

    private static Request send(CoapEndpoint endpoint, InetSocketAddress peer, CountDownLatch ended, AtomicInteger answered) {
        Request request = Request.newGet();
        request.setDestinationContext(new UdpEndpointContext(peer));
        AtomicBoolean isOver = new AtomicBoolean();
        request.addMessageObserver(new MessageObserverAdapter() {

            @Override
            public void onResponse(Response response) {
                answered.incrementAndGet();
                end();
            }

            @Override
            public void onCancel() {
                end();
            }

            @Override
            protected void failed() {
                end();
            }

            private void end() {
                if (isOver.compareAndSet(false, true)) {
                    ended.countDown();
                }
            }
        });
        endpoint.sendRequest(request);
        return request;
    }
}
