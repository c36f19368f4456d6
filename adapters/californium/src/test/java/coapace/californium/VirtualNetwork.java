package coapace.californium;

import java.net.DatagramPacket;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.PriorityQueue;
import java.util.concurrent.AbstractExecutorService;
import java.util.concurrent.Callable;
import java.util.concurrent.Delayed;
import java.util.concurrent.FutureTask;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;

import org.eclipse.californium.core.coap.Request;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.core.network.ExtendedCoapStackFactory;
import org.eclipse.californium.core.network.Outbox;
import org.eclipse.californium.core.network.stack.CoapStack;
import org.eclipse.californium.elements.Connector;
import org.eclipse.californium.elements.EndpointContextMatcher;
import org.eclipse.californium.elements.RawData;
import org.eclipse.californium.elements.RawDataChannel;
import org.eclipse.californium.elements.UdpEndpointContext;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.config.UdpConfig;
import org.eclipse.californium.elements.util.ClockUtil;

/**
 * An endpoint of Californium with a clock, threads and a socket that are not real: time passes when {@link #runFor} is called, and
 * datagrams go to {@link #peer}. Everything between {@code Endpoint.sendRequest} and the datagram is Californium's, or ours.
 */
final class VirtualNetwork {

    static final InetSocketAddress PEER = new InetSocketAddress(InetAddress.getLoopbackAddress(), 5683);
    private static final InetSocketAddress LOCAL = new InetSocketAddress(InetAddress.getLoopbackAddress(), 5684);

    /** Takes a datagram of the endpoint. */
    interface Peer {
        void take(Datagram datagram);
    }

    /** A datagram that the endpoint sent. */
    static final class Datagram {
        final byte[] bytes;
        final long atMillis;
        final int number;

        Datagram(byte[] bytes, long atMillis, int number) {
            this.bytes = bytes;
            this.atMillis = atMillis;
            this.number = number;
        }

        int type() {
            return bytes[0] >> 4 & 3;
        }

        int code() {
            return bytes[1] & 0xff;
        }

        int messageId() {
            return (bytes[2] & 0xff) << 8 | bytes[3] & 0xff;
        }

        byte[] token() {
            return Arrays.copyOfRange(bytes, 4, 4 + (bytes[0] & 15));
        }
    }

    final Loop loop = new Loop();
    final Wire wire = new Wire();
    final List<Datagram> sent = new ArrayList<>();
    final Configuration config;
    CoapEndpoint endpoint;
    CoapaceLayer layer;
    Peer peer = datagram -> { };
    /** How long a datagram waits between its arrival and the endpoint. */
    long busyMillis;

    VirtualNetwork() {
        CoapConfig.register();
        UdpConfig.register();
        config = Configuration.createStandardWithoutFile();
        config.set(CoapConfig.TOKEN_SIZE_LIMIT, 7);
        // Californium takes the time 0 for an unset one.
        ClockUtil.setRealtimeHandler(() -> loop.nowNanos + 1_000_000_000);
    }

    /** Starts an endpoint with a mechanism, or with Californium's own stack. */
    VirtualNetwork start(String mechanism) throws Exception {
        CoapEndpoint.Builder builder = CoapEndpoint.builder().setConfiguration(config).setConnector(wire);
        if (!mechanism.equals("stock")) {
            builder.setCoapStackFactory(keepLayer(new CoapaceStackFactory(mechanism)));
        }
        endpoint = builder.build();
        endpoint.setExecutors(loop, new Loop()); // the second executor has no jobs of an exchange
        endpoint.start();
        return this;
    }

    /** Returns a factory that keeps the layer it makes, to look at it. */
    ExtendedCoapStackFactory keepLayer(ExtendedCoapStackFactory factory) {
        return new Factory(factory);
    }

    @SuppressWarnings("deprecation") // of the interface that ExtendedCoapStackFactory extends
    private final class Factory implements ExtendedCoapStackFactory {

        private final ExtendedCoapStackFactory inner;

        Factory(ExtendedCoapStackFactory inner) {
            this.inner = inner;
        }

        @Override
        public CoapStack createCoapStack(String protocol, String tag, Configuration config, EndpointContextMatcher matcher,
                Outbox outbox, Object custom) {
            CoapStack stack = inner.createCoapStack(protocol, tag, config, matcher, outbox, custom);
            layer = ((CoapaceStack) stack).getLayer(CoapaceLayer.class);
            return stack;
        }

        @Override
        public CoapStack createCoapStack(String protocol, String tag, Configuration config, Outbox outbox, Object custom) {
            throw new UnsupportedOperationException("the endpoint hands over its matcher");
        }
    }

    Request send() {
        return send(Request.newGet());
    }

    Request send(Request request) {
        request.setDestinationContext(new UdpEndpointContext(PEER));
        endpoint.sendRequest(request);
        loop.settle();
        return request;
    }

    void runFor(long millis) {
        loop.runUntil(loop.nowNanos + millis * 1_000_000);
    }

    /** Answers every request after this time, with the token it has. */
    void answerAllAfter(long millis) {
        peer = datagram -> answer(datagram, millis);
    }

    /** Answers a request by an acknowledgement with 2.05, to the token that it has. */
    void answer(Datagram datagram, long afterMillis) {
        byte[] response = new byte[4 + datagram.token().length];
        System.arraycopy(datagram.bytes, 0, response, 0, response.length);
        response[0] = (byte) (0x60 | datagram.token().length);
        response[1] = 0x45;
        deliver(response, afterMillis);
    }

    void deliver(byte[] bytes, long afterMillis) {
        loop.schedule(() -> {
            RawData data = RawData.inbound(bytes, new UdpEndpointContext(PEER), false, ClockUtil.nanoRealtime(), LOCAL);
            loop.schedule(() -> wire.inbox.receiveData(data), busyMillis, TimeUnit.MILLISECONDS);
        }, afterMillis, TimeUnit.MILLISECONDS);
    }

    /** Jobs in the order of their time, all in the thread of the test. */
    static final class Loop extends AbstractExecutorService implements ScheduledExecutorService {

        private final PriorityQueue<Timer> timers = new PriorityQueue<>();
        private long nowNanos;
        private long count;

        private final class Timer extends FutureTask<Void> implements ScheduledFuture<Void> {
            final long atNanos;
            final long order = count++;

            Timer(Runnable job, long atNanos) {
                super(job, null);
                this.atNanos = atNanos;
            }

            @Override
            public long getDelay(TimeUnit unit) {
                return unit.convert(atNanos - nowNanos, TimeUnit.NANOSECONDS);
            }

            @Override
            public int compareTo(Delayed other) {
                Timer timer = (Timer) other;
                return atNanos != timer.atNanos ? Long.compare(atNanos, timer.atNanos) : Long.compare(order, timer.order);
            }

            @Override
            protected void setException(Throwable error) {
                throw new AssertionError("a job failed", error);
            }
        }

        void settle() {
            runUntil(nowNanos);
        }

        void runUntil(long untilNanos) {
            while (!timers.isEmpty() && timers.peek().atNanos <= untilNanos) {
                Timer timer = timers.remove();
                nowNanos = Math.max(nowNanos, timer.atNanos);
                timer.run();
            }
            nowNanos = untilNanos;
        }

        long nowMillis() {
            return nowNanos / 1_000_000;
        }

        @Override
        public void execute(Runnable job) {
            schedule(job, 0, TimeUnit.NANOSECONDS);
        }

        @Override
        public ScheduledFuture<?> schedule(Runnable job, long delay, TimeUnit unit) {
            Timer timer = new Timer(job, nowNanos + unit.toNanos(delay));
            timers.add(timer);
            return timer;
        }

        /** Periodic jobs sweep tables and write statistics. They are never run. */
        @Override
        public ScheduledFuture<?> scheduleAtFixedRate(Runnable job, long first, long period, TimeUnit unit) {
            return new Timer(job, nowNanos + unit.toNanos(first));
        }

        @Override
        public ScheduledFuture<?> scheduleWithFixedDelay(Runnable job, long first, long delay, TimeUnit unit) {
            return new Timer(job, nowNanos + unit.toNanos(first));
        }

        @Override
        public <V> ScheduledFuture<V> schedule(Callable<V> job, long delay, TimeUnit unit) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void shutdown() {
            timers.clear();
        }

        @Override
        public List<Runnable> shutdownNow() {
            shutdown();
            return Collections.emptyList();
        }

        @Override
        public boolean isShutdown() {
            return false;
        }

        @Override
        public boolean isTerminated() {
            return false;
        }

        @Override
        public boolean awaitTermination(long timeout, TimeUnit unit) {
            return true;
        }
    }

    /** In place of the UDP socket. */
    final class Wire implements Connector {

        RawDataChannel inbox;
        /** As a connector with DTLS does during a handshake. */
        long delayMillis;

        /** Like in a socket's sender thread, the callbacks come after the layers are done. */
        @Override
        public void send(RawData data) {
            loop.schedule(() -> {
                data.onContextEstablished(new UdpEndpointContext(PEER));
                Datagram datagram = new Datagram(data.getBytes(), loop.nowMillis(), sent.size());
                sent.add(datagram);
                data.onSent();
                peer.take(datagram);
            }, delayMillis, TimeUnit.MILLISECONDS);
        }

        @Override
        public void setRawDataReceiver(RawDataChannel receiver) {
            inbox = receiver;
        }

        @Override
        public void setEndpointContextMatcher(EndpointContextMatcher matcher) {
        }

        @Override
        public InetSocketAddress getAddress() {
            return LOCAL;
        }

        @Override
        public String getProtocol() {
            return "UDP";
        }

        @Override
        public boolean isRunning() {
            return true;
        }

        @Override
        public void start() {
        }

        @Override
        public void stop() {
        }

        @Override
        public void destroy() {
        }

        @Override
        public void processDatagram(DatagramPacket datagram) {
        }
    }
}
