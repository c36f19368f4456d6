package coapace.californium;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.math.BigDecimal;
import java.net.DatagramPacket;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

import org.eclipse.californium.core.coap.Request;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.config.CoapConfig.CongestionControlMode;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.core.network.CoapStackFactory;
import org.eclipse.californium.core.network.Exchange;
import org.eclipse.californium.core.network.ExtendedCoapStackFactory;
import org.eclipse.californium.core.network.Outbox;
import org.eclipse.californium.core.network.stack.CoapStack;
import org.eclipse.californium.core.network.stack.CoapUdpStack;
import org.eclipse.californium.core.network.stack.CongestionControlLayer;
import org.eclipse.californium.core.network.stack.ReliabilityLayer;
import org.eclipse.californium.core.network.stack.RemoteEndpoint;
import org.eclipse.californium.elements.Connector;
import org.eclipse.californium.elements.EndpointContextMatcher;
import org.eclipse.californium.elements.RawData;
import org.eclipse.californium.elements.RawDataChannel;
import org.eclipse.californium.elements.UdpEndpointContext;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.config.UdpConfig;
import org.eclipse.californium.elements.util.ClockUtil;

/**
 * Replays scripts of exchanges through Californium, like {@code coapace trace} does through a mechanism.
 *
 * <p>{@code Trace COCOA < scripts.csv > trace.csv}: vectors/README.md describes scripts. A header begins the
 * next script, with a fresh endpoint. {@code timeout_ms} is the delay of the timer that Californium armed, {@code rto_ms} is
 * {@link RemoteEndpoint#getRTO()} after the event. A script that cannot be followed, or that Californium does not
 * follow, ends the program with an exception.
 *
 * <p>All of Californium between {@code Endpoint.sendRequest} and the datagram is real. Replaced are the socket
 * ({@link Wire}), the threads ({@link ManualExecutor}), the clock and the random numbers ({@link Draw}).
 */
public final class Trace {

    private static final InetSocketAddress LOCAL = new InetSocketAddress(InetAddress.getLoopbackAddress(), 5684);
    private static final InetSocketAddress PEER = new InetSocketAddress(InetAddress.getLoopbackAddress(), 5683);
    /** Californium takes the time 0 for an unset one. */
    private static final BigDecimal ORIGIN_MS = BigDecimal.valueOf(1_000);

    private static volatile long nowNanos;

    private final ManualExecutor loop = new ManualExecutor();
    private final Wire wire = new Wire();
    private final Draw draw = new Draw();
    private final CoapEndpoint endpoint;
    private CongestionControlLayer layer;
    /** The key of the peer's state in the layer. */
    private Exchange probe;
    /** The request of the open exchange. */
    private Request request;

    public static void main(String[] arguments) throws Exception {
        CongestionControlMode mode = CongestionControlMode.valueOf(arguments[0]);
        CoapConfig.register();
        UdpConfig.register();
        ClockUtil.setRealtimeHandler(() -> nowNanos);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StringBuilder out = new StringBuilder();
        List<String> columns = null;
        Trace trace = null;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.isBlank() || line.startsWith("#")) {
                continue;
            }
            List<String> fields = Arrays.asList(line.split(",", -1));
            if (fields.contains("at_ms")) {
                columns = fields;
                nowNanos = nanos(BigDecimal.ZERO);
                trace = new Trace(mode);
                out.append("at_ms,event,timeout_ms,rto_ms\n");
                continue;
            }
            if (columns == null) {
                throw new IllegalArgumentException("no header before: " + line);
            }
            String draw = columns.contains("draw") ? fields.get(columns.indexOf("draw")) : "";
            trace.draw.value = draw.isEmpty() ? 0 : Double.parseDouble(draw);
            BigDecimal at = new BigDecimal(fields.get(columns.indexOf("at_ms"))).setScale(3);
            String event = fields.get(columns.indexOf("event"));
            nowNanos = nanos(at);
            trace.play(event, line);
            Long armed = trace.loop.armedMillis();
            out.append(at.toPlainString()).append(',').append(event).append(',');
            out.append(armed == null ? "" : armed + ".000").append(',');
            out.append(trace.rto()).append(".000\n");
        }
        PrintStream stdout = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        stdout.print(out);
        stdout.flush();
    }

    private static long nanos(BigDecimal atMillis) {
        return atMillis.add(ORIGIN_MS).movePointRight(6).longValueExact();
    }

    /** A fresh endpoint with Californium's own defaults, except for the algorithm. */
    private Trace(CongestionControlMode mode) throws Exception {
        Configuration config = Configuration.createStandardWithoutFile();
        config.set(CoapConfig.CONGESTION_CONTROL_ALGORITHM, mode);
        CoapStackFactory stacks = new ExtendedCoapStackFactory() {

            @Override
            public CoapStack createCoapStack(String protocol, String tag, Configuration config,
                    EndpointContextMatcher matcher, Outbox outbox, Object custom) {
                CoapUdpStack stack = new CoapUdpStack(tag, config, matcher, outbox);
                layer = stack.getLayer(CongestionControlLayer.class);
                Object peer = matcher.getEndpointIdentity(new UdpEndpointContext(PEER));
                probe = new Exchange(Request.newGet(), peer, Exchange.Origin.LOCAL, null);
                return stack;
            }

            @Override
            public CoapStack createCoapStack(String protocol, String tag, Configuration config, Outbox outbox,
                    Object custom) {
                throw new UnsupportedOperationException("the endpoint hands over its matcher");
            }
        };
        endpoint = CoapEndpoint.builder().setConfiguration(config).setConnector(wire).setCoapStackFactory(stacks).build();
        Field rand = ReliabilityLayer.class.getDeclaredField("rand");
        rand.setAccessible(true);
        rand.set(layer, draw);
        endpoint.setExecutors(loop, new ManualExecutor()); // the second executor has no jobs of an exchange
        endpoint.start();
    }

    /** The method is protected, and the signature of Californium's jar keeps other classes out of its package. */
    private long rto() throws ReflectiveOperationException {
        Method getRemoteEndpoint = CongestionControlLayer.class.getDeclaredMethod("getRemoteEndpoint", Exchange.class);
        getRemoteEndpoint.setAccessible(true);
        return ((RemoteEndpoint) getRemoteEndpoint.invoke(layer, probe)).getRTO();
    }

    private void play(String event, String line) {
        switch (event) {
        case "start":
            require(request == null, line);
            request = Request.newGet();
            request.setDestinationContext(new UdpEndpointContext(PEER));
            int before = wire.transmissions;
            endpoint.sendRequest(request);
            loop.settle();
            require(wire.transmissions == before + 1 && loop.armedMillis() != null, line);
            return;
        case "timeout":
            before = wire.transmissions;
            loop.fire();
            require(wire.transmissions == before + 1 && loop.armedMillis() != null, line);
            return;
        case "ack":
            wire.answer(0x60, 0x45); // ACK, 2.05, token: a piggybacked response
            require(request.getResponse() != null, line);
            break;
        case "reset":
            wire.answer(0x70, 0); // RST, empty
            require(request.isRejected(), line);
            break;
        case "giveup":
            loop.fire();
            require(request.isTimedOut(), line);
            break;
        default:
            throw new IllegalArgumentException("unknown event: " + line);
        }
        require(loop.armedMillis() == null, line);
        request = null;
    }

    private static void require(boolean followed, String line) {
        if (!followed) {
            throw new IllegalStateException("Californium does not follow: " + line);
        }
    }

    /**
     * Replaces Californium's random numbers by the draw of the script. Californium dithers by a whole number of
     * milliseconds, the upper bound included; the draw is a part of the span from 0 to there.
     */
    private static final class Draw extends Random {

        private static final long serialVersionUID = 1;
        double value;

        @Override
        public int nextInt(int bound) {
            return (int) (value * (bound - 1));
        }
    }

    /** Replaces the UDP socket: keeps the last datagram, so that it can be answered. */
    private final class Wire implements Connector {

        private RawDataChannel inbox;
        private byte[] last;
        int transmissions;

        /** Like in a socket's sender thread, the callbacks come after the layers are done. */
        @Override
        public void send(RawData data) {
            last = data.getBytes();
            transmissions++;
            loop.execute(() -> {
                data.onContextEstablished(new UdpEndpointContext(PEER));
                data.onSent();
            });
        }

        /** A message of the peer with the Message ID of the last datagram, and with its token, unless it is empty. */
        void answer(int versionAndType, int code) {
            int tokenLength = code == 0 ? 0 : last[0] & 0x0f;
            byte[] bytes = Arrays.copyOf(last, 4 + tokenLength);
            bytes[0] = (byte) (versionAndType | tokenLength);
            bytes[1] = (byte) code;
            inbox.receiveData(RawData.inbound(bytes, new UdpEndpointContext(PEER), false, nowNanos, LOCAL));
            loop.settle();
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
