package coapace.californium;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;

import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;

import coapace.californium.VirtualNetwork.Datagram;
import coapace.control.Mechanism;
import org.eclipse.californium.core.CoapResource;
import org.eclipse.californium.core.coap.CoAP;
import org.eclipse.californium.core.coap.MessageObserverAdapter;
import org.eclipse.californium.core.coap.Request;
import org.eclipse.californium.core.coap.Token;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.Exchange;
import org.eclipse.californium.core.network.stack.ReliabilityLayerParameters;
import org.eclipse.californium.core.server.ServerMessageDeliverer;
import org.eclipse.californium.core.server.resources.CoapExchange;
import org.eclipse.californium.core.server.resources.Resource;
import org.eclipse.californium.elements.UdpEndpointContext;
import org.eclipse.californium.elements.util.ClockUtil;
import org.junit.After;
import org.junit.Test;

/** An endpoint with the adapter, in virtual time. */
public class CoapaceLayerTest {

    private static final int RTT = 40;

    private final VirtualNetwork net = new VirtualNetwork();

    @After
    public void restoreClock() {
        ClockUtil.setRealtimeHandler(System::nanoTime);
    }

    /** Makes exchanges that are answered at once, so that the mechanism knows the path. */
    private void learn(int count) {
        net.answerAllAfter(RTT);
        for (int i = 0; i < count; i++) {
            Request request = net.send();
            net.runFor(RTT + 1);
            assertNotNull(request.getResponse());
        }
        net.sent.clear();
    }

    private static List<Long> times(VirtualNetwork net) {
        List<Long> times = new ArrayList<>();
        net.sent.forEach(datagram -> times.add(datagram.atMillis));
        return times;
    }

    /** Returns the time until a request to a peer that answers nothing fails. */
    private static long timeToFail(VirtualNetwork net) {
        Request request = net.send();
        long begin = net.loop.nowMillis();
        long[] end = {-1};
        request.addMessageObserver(new MessageObserverAdapter() {
            @Override
            public void onTimeout() {
                end[0] = net.loop.nowMillis();
            }
        });
        net.runFor(1_000_000);
        assertTrue(request.isTimedOut());
        return end[0] - begin;
    }

    @Test
    public void itWaitsForTheRoundTripAndNotForTwoSeconds() throws Exception {
        net.start("ebb");
        learn(20);
        net.peer = datagram -> {
            if (datagram.number > 0) {
                net.answer(datagram, RTT);
            }
        };
        Request request = net.send();
        net.runFor(200);
        assertNotNull(request.getResponse());
        assertEquals(2, net.sent.size());
        long waited = net.sent.get(1).atMillis - net.sent.get(0).atMillis;
        assertTrue("waited " + waited, waited >= 50 && waited <= 64);
    }

    @Test
    public void noMechanismGivesUpSoonerThanCalifornium() throws Exception {
        for (Mechanism mechanism : Mechanism.values()) {
            for (int known : new int[] {0, 20}) {
                VirtualNetwork net = new VirtualNetwork().start(mechanism.toString());
                net.answerAllAfter(RTT);
                for (int i = 0; i < known; i++) {
                    net.send();
                    net.runFor(RTT + 1);
                }
                net.peer = datagram -> { };
                net.sent.clear();
                long waited = timeToFail(net);
                assertTrue(mechanism + " gave up after " + waited, waited >= 93_000);
                assertTrue(mechanism + ": " + times(net), net.sent.size() >= 5 && net.sent.size() <= 6);
                for (int i = 5; i < net.sent.size(); i++) {
                    long span = net.sent.get(i).atMillis - net.sent.get(i - 5).atMillis;
                    assertTrue(mechanism + " sent 6 copies within " + span, span >= 45_000);
                }
            }
        }
    }

    @Test
    public void californiumItselfGivesUpBefore() throws Exception {
        net.start("stock");
        long waited = timeToFail(net);
        assertTrue("gave up after " + waited, waited >= 62_000 && waited <= 93_000);
        assertEquals(5, net.sent.size());
    }

    @Test
    public void patienceFollowsTheConfiguration() throws Exception {
        net.config.set(CoapConfig.MAX_RETRANSMIT, 2);
        net.config.set(CoapConfig.ACK_TIMEOUT, 4, TimeUnit.SECONDS);
        net.start("ebb");
        learn(20);
        net.peer = datagram -> { };
        long waited = timeToFail(net);
        // (4 + 8 + 16) · 1.5, and one copy after (4 + 8) · 1.5
        assertTrue("gave up after " + waited, waited >= 42_000 && waited < 42_100);
        assertEquals(4, net.sent.size());
        long last = net.sent.get(3).atMillis - net.sent.get(0).atMillis;
        assertTrue("the last copy after " + last, last >= 18_000 && last < 18_100);
    }

    @Test
    public void aPeerThatReturnsAfterThirtySecondsLosesNothing() throws Exception {
        net.start("ebb");
        learn(20);
        long back = net.loop.nowMillis() + 30_000;
        net.peer = datagram -> {
            if (datagram.atMillis >= back) {
                net.answer(datagram, RTT);
            }
        };
        Request request = net.send();
        net.runFor(50_000);
        assertNotNull(request.getResponse());
        assertFalse(request.isTimedOut());
    }

    @Test
    public void aSilentPeerGetsNoMoreThanCaliforniumSends() throws Exception {
        net.start("fasor"); // which forgets a backoff
        learn(20);
        net.peer = datagram -> { };
        timeToFail(net);
        net.sent.clear();
        net.send();
        net.runFor(1_900);
        assertEquals(1, net.sent.size());
        net.runFor(4_000);
        assertEquals(2, net.sent.size());
        // It speaks again: the next exchange follows the path.
        net.answerAllAfter(RTT);
        net.runFor(10_000);
        learn(3);
        net.peer = datagram -> { };
        net.send();
        net.runFor(1_000);
        assertTrue("" + net.sent.size(), net.sent.size() >= 3);
    }

    @Test
    public void copiesAreMarkedAndTheirAnswersUnderstood() throws Exception {
        net.start("ebb");
        learn(20);
        net.peer = datagram -> {
            if (datagram.number == 2) {
                net.answer(datagram, RTT);
            }
        };
        Request request = net.send();
        net.runFor(1_000);
        byte[] own = request.getTokenBytes();
        assertEquals(7, own.length);
        assertArrayEquals(own, net.sent.get(0).token());
        for (int n = 1; n <= 2; n++) {
            byte[] marked = Arrays.copyOf(own, 8);
            marked[7] = (byte) n;
            assertArrayEquals(marked, net.sent.get(n).token());
            assertEquals(net.sent.get(0).messageId(), net.sent.get(n).messageId());
            assertArrayEquals(tail(net.sent.get(0)), tail(net.sent.get(n)));
        }
        assertNotNull(request.getResponse());
        assertArrayEquals(own, request.getResponse().getTokenBytes());
        assertEquals("kept", 0, marks().size());
    }

    private static byte[] tail(Datagram datagram) {
        return Arrays.copyOfRange(datagram.bytes, 4 + datagram.token().length, datagram.bytes.length);
    }

    private Marks marks() {
        return net.layer.marks;
    }

    private Destination destination() {
        return net.layer.destinations.find(new UdpEndpointContext(VirtualNetwork.PEER));
    }

    /** The answers get later, all of them to first transmissions. */
    @Test
    public void aSpuriousRetransmissionIsNoLoss() throws Exception {
        net.start("ebb");
        learn(20);
        long known = destination().controller.rtoMicros();
        net.peer = datagram -> {
            if (datagram.token().length == 7) {
                net.answer(datagram, 70);
            }
        };
        Request request = net.send();
        net.runFor(100);
        assertEquals("a copy was sent", 2, net.sent.size());
        assertNotNull(request.getResponse());
        // The answer is to the first, its timeout has passed, but it came too soon for the copy: a sample, and no backoff.
        long now = destination().controller.rtoMicros();
        assertTrue(known + " " + now, now > known && now < 150_000);
    }

    /** The server repeats its first answer for the copy (RFC 7252 §4.5): it does not tell how long the round trip is. */
    @Test
    public void aRepeatedAnswerIsNoSample() throws Exception {
        net.start("ebb");
        learn(20);
        long known = destination().controller.rtoMicros();
        net.peer = datagram -> {
            if (datagram.number == 1) {
                net.answer(net.sent.get(0), RTT + 5);
            }
        };
        Request request = net.send();
        net.runFor(200);
        assertNotNull(request.getResponse());
        assertEquals(2, net.sent.size());
        assertEquals(known, destination().controller.rtoMicros());
    }

    @Test
    public void aPeerThatAnswersEachCopyIsRecognised() throws Exception {
        net.start("ebb");
        learn(20);
        net.answerAllAfter(70);
        Request request = net.send();
        net.runFor(300);
        assertNotNull(request.getResponse());
        assertTrue(net.sent.size() >= 2);
        assertTrue(destination().answersEach);
    }

    @Test
    public void aTokenOfEightBytesAndAnObservationStayUnmarked() throws Exception {
        net.start("ebb");
        learn(5);
        net.peer = datagram -> { };
        Request observe = net.send(Request.newGet().setObserve());
        net.runFor(2_000);
        byte[] token = {1, 2, 3, 4, 5, 6, 7, 8};
        Request request = Request.newGet();
        request.setToken(token);
        observe.cancel();
        net.sent.clear();
        net.send(request);
        net.runFor(1_000);
        assertTrue(net.sent.size() > 2);
        for (Datagram datagram : net.sent) {
            assertArrayEquals(token, datagram.token());
        }
        net.answer(net.sent.get(1), RTT);
        net.runFor(100);
        assertNotNull(request.getResponse());
    }

    @Test
    public void anObservationKeepsItsToken() throws Exception {
        net.start("ebb");
        learn(5);
        net.peer = datagram -> { };
        net.send(Request.newGet().setObserve());
        net.runFor(1_000);
        assertTrue(net.sent.size() > 2);
        byte[] token = net.sent.get(0).token();
        net.sent.forEach(datagram -> assertArrayEquals(token, datagram.token()));
    }

    @Test
    public void aPingIsNotMarked() throws Exception {
        net.start("ebb");
        learn(5);
        net.peer = datagram -> { };
        Request ping = Request.newPing();
        ping.setToken(Token.EMPTY);
        net.send(ping);
        net.runFor(1_000);
        assertTrue(net.sent.size() > 2);
        net.sent.forEach(datagram -> assertEquals(4, datagram.bytes.length));
        byte[] reset = net.sent.get(0).bytes.clone();
        reset[0] = 0x70;
        net.deliver(reset, RTT);
        net.runFor(100);
        assertTrue(ping.isRejected());
    }

    @Test
    public void onlyNstartRequestsAreUnderWay() throws Exception {
        net.start("ebb");
        net.peer = datagram -> { };
        List<Request> requests = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            requests.add(net.send());
        }
        assertEquals(1, net.sent.size());
        // The second is cancelled while it waits, the first while it is under way.
        requests.get(1).cancel();
        requests.get(0).cancel();
        net.runFor(1);
        assertEquals(2, net.sent.size());
        net.answer(net.sent.get(1), RTT);
        net.runFor(RTT + 1);
        assertNotNull(requests.get(2).getResponse());
        assertEquals(3, net.sent.size());
        // An empty acknowledgement frees the place; the response may come much later.
        byte[] acknowledgement = Arrays.copyOf(net.sent.get(2).bytes, 4);
        acknowledgement[0] = 0x60;
        acknowledgement[1] = 0;
        Request fifth = net.send();
        net.deliver(acknowledgement, RTT);
        net.runFor(RTT + 1);
        assertEquals(4, net.sent.size());
        net.answer(net.sent.get(3), RTT);
        net.runFor(RTT + 1);
        assertNotNull(fifth.getResponse());
        assertNull(requests.get(3).getResponse());
        byte[] separate = new byte[4 + 7];
        System.arraycopy(net.sent.get(2).bytes, 0, separate, 0, separate.length);
        separate[0] = 0x47;
        separate[1] = 0x45;
        net.deliver(separate, RTT);
        net.runFor(100);
        assertNotNull(requests.get(3).getResponse());
    }

    @Test
    public void aTimeoutLetsTheNextRequestStart() throws Exception {
        net.start("ebb");
        net.peer = datagram -> { };
        Request first = net.send();
        Request second = net.send();
        net.runFor(120_000);
        assertTrue(first.isTimedOut());
        assertFalse(second.isTimedOut());
        net.runFor(400_000);
        assertTrue(second.isTimedOut());
    }

    @Test
    public void nstartIsThatOfTheConfiguration() throws Exception {
        net.config.set(CoapConfig.NSTART, 3);
        net.start("ebb");
        for (int i = 0; i < 5; i++) {
            net.send();
        }
        assertEquals(3, net.sent.size());
    }

    @Test
    public void tooManyWaitingRequestsFail() throws Exception {
        net.start("ebb");
        Request last = null;
        for (int i = 0; i < Destination.MAX_WAITING + 2; i++) {
            assertTrue(last == null || last.getSendError() == null);
            last = net.send();
        }
        assertNotNull(last.getSendError());
        assertTrue(last.getSendError().getMessage().contains("NSTART"));
    }

    /** A place that is lost, as if a connector had swallowed a message, does not stop the requests that wait. */
    @Test
    public void aSwallowedRequestGivesItsPlaceBack() throws Exception {
        net.start("ebb");
        net.wire.delayMillis = 10_000_000;
        net.send();
        net.wire.delayMillis = 0;
        Request second = net.send();
        net.answerAllAfter(RTT);
        assertEquals(0, net.sent.size());
        net.runFor(100_000);
        assertNotNull(second.getResponse());
    }

    @Test
    public void aMessageKeepsItsOwnParameters() throws Exception {
        net.start("ebb");
        learn(20);
        net.peer = datagram -> { };
        Request request = Request.newGet();
        request.setReliabilityLayerParameters(ReliabilityLayerParameters.builder().applyConfig(net.config).ackTimeout(500)
                .ackRandomFactor(1).maxRetransmit(2).build());
        long begin = net.loop.nowMillis();
        net.send(request);
        net.runFor(20_000);
        assertEquals(Arrays.asList(begin, begin + 500, begin + 1_500), times(net));
        assertTrue(request.isTimedOut());
    }

    /** A handshake of DTLS before the first message does not count as round trip. */
    @Test
    public void aHandshakeIsNotMeasured() throws Exception {
        net.start("ebb");
        net.wire.delayMillis = 3_000;
        net.answerAllAfter(RTT);
        Request request = net.send();
        net.runFor(4_000);
        assertNotNull(request.getResponse());
        // SRTT + 3 · SRTT / 2
        assertEquals(2.5 * RTT * 1000, destination().controller.rtoMicros(), 5_000);
    }

    /** An answer that waits in a busy program is measured by its arrival, and a copy that departs meanwhile is not needed. */
    @Test
    public void aBusyProgramIsNotMeasured() throws Exception {
        net.start("ebb");
        learn(20);
        long known = destination().controller.rtoMicros();
        net.peer = datagram -> {
            if (datagram.number == 0) {
                net.busyMillis = 60;
                net.answer(datagram, RTT);
            }
        };
        Request request = net.send();
        net.runFor(300);
        assertNotNull(request.getResponse());
        assertEquals("a copy was sent", 2, net.sent.size());
        assertEquals(known, destination().controller.rtoMicros(), 2_000);
    }

    /** An answer that comes while a copy waits to be sent is not dropped. */
    @Test
    public void anAnswerBesideACopyIsTaken() throws Exception {
        net.start("ebb");
        learn(20);
        net.peer = datagram -> {
            if (datagram.number == 0) {
                net.wire.delayMillis = 30;
                net.answer(datagram, 70);
            }
        };
        Request request = net.send();
        net.runFor(75);
        assertEquals(1, net.sent.size());
        assertNotNull(request.getResponse());
    }

    @Test
    public void theTableOfDestinationsIsBounded() throws Exception {
        net.config.set(CoapConfig.MAX_ACTIVE_PEERS, 10);
        net.start("ebb");
        Destinations destinations = net.layer.destinations;
        net.answerAllAfter(RTT);
        for (int i = 0; i < 1_000; i++) {
            Object identity = new InetSocketAddress("127.0.0.1", 1_000 + i);
            destinations.of(new Exchange(Request.newGet(), identity, Exchange.Origin.LOCAL, net.loop));
            assertTrue(destinations.size() <= 10);
        }
        learn(1);
        assertTrue(destinations.size() <= 10);
        // Idle ones are forgotten after ten minutes, two with every call.
        net.runFor(601_000);
        for (int i = 0; i < 6; i++) {
            learn(1);
        }
        assertEquals(1, destinations.size());
    }

    /** A body of three blocks, each of which is lost at first. */
    @Test
    public void blocksOfABodyAreMarkedToo() throws Exception {
        net.start("ebb");
        learn(20);
        List<String> seen = new ArrayList<>();
        net.peer = datagram -> {
            String block = datagram.messageId() + "";
            if (!seen.contains(block)) {
                seen.add(block);
                return;
            }
            int number = seen.size() - 1;
            byte[] token = datagram.token();
            byte[] response = new byte[4 + token.length + 2 + 1 + 16];
            System.arraycopy(datagram.bytes, 0, response, 0, 4 + token.length);
            response[0] = (byte) (0x60 | token.length);
            response[1] = 0x45;
            response[4 + token.length] = (byte) 0xd1; // Block2: option 13 + 10, one byte
            response[5 + token.length] = 10;
            response[6 + token.length] = (byte) (number << 4 | (number < 2 ? 8 : 0));
            byte[] whole = Arrays.copyOf(response, response.length + 1);
            whole[7 + token.length] = (byte) 0xff;
            net.deliver(whole, RTT);
        };
        Request request = net.send();
        net.runFor(2_000);
        assertNotNull(request.getResponse());
        assertEquals(48, request.getResponse().getPayloadSize());
        assertEquals(6, net.sent.size());
        for (int n = 0; n < 6; n++) {
            assertEquals(7 + n % 2, net.sent.get(n).token().length);
        }
        assertEquals(0, marks().size());
    }

    /** A server whose separate response is lost follows the mechanism, too. */
    @Test
    public void confirmableResponsesFollowThePath() throws Exception {
        net.start("ebb");
        CoapExchange[] pending = new CoapExchange[1];
        Resource root = new CoapResource("") {
            @Override
            public void handleGET(CoapExchange exchange) {
                exchange.accept();
                pending[0] = exchange;
            }
        };
        net.endpoint.setMessageDeliverer(new ServerMessageDeliverer(root, net.config));
        net.peer = datagram -> {
            if (datagram.type() == 0 && datagram.code() != 0) {
                byte[] acknowledgement = Arrays.copyOf(datagram.bytes, 4);
                acknowledgement[0] = 0x60;
                acknowledgement[1] = 0;
                net.deliver(acknowledgement, RTT);
            }
        };
        byte[] get = {0x41, 1, 0, 0, 9};
        for (int i = 0; i < 10; i++) {
            get[3]++;
            net.deliver(get.clone(), 0);
            net.runFor(1);
            pending[0].respond(CoAP.ResponseCode.CONTENT, "on");
            net.runFor(2 * RTT);
        }
        net.peer = datagram -> { };
        get[3]++;
        net.deliver(get.clone(), 0);
        net.runFor(1);
        net.sent.clear();
        pending[0].respond(CoAP.ResponseCode.CONTENT, "on");
        net.runFor(70);
        assertEquals(2, net.sent.size());
        assertEquals(0, net.sent.get(1).type());
        net.runFor(200_000);
        assertEquals(6, net.sent.size());
    }

    /** A notification that replaces one that is not acknowledged goes on with its backoff and its patience. */
    @Test
    public void aNewerNotificationGoesOnWhereTheOlderWas() throws Exception {
        net.start("ebb");
        int[] state = {0};
        CoapResource root = new CoapResource("") {
            @Override
            public void handleGET(CoapExchange exchange) {
                exchange.respond(CoAP.ResponseCode.CONTENT, "" + state[0]);
            }
        };
        root.setObservable(true);
        root.setObserveType(CoAP.Type.CON);
        net.endpoint.setMessageDeliverer(new ServerMessageDeliverer(root, net.config));
        net.deliver(new byte[] {0x41, 1, 0, 1, 9, 0x60}, 0);
        net.runFor(10);
        assertEquals(1, net.sent.size());
        net.sent.clear();
        long begin = net.loop.nowMillis();
        state[0]++;
        root.changed();
        net.runFor(1_000);
        state[0]++;
        root.changed();
        net.runFor(200_000);
        assertTrue("" + times(net), net.sent.size() >= 5 && net.sent.size() <= 6);
        assertTrue(net.sent.get(1).messageId() != net.sent.get(0).messageId());
        long second = net.sent.get(2).atMillis - net.sent.get(1).atMillis;
        assertTrue("" + second, second >= 4_000);
        assertTrue(destination().isIdle());
        assertTrue(net.loop.nowMillis() - begin > 93_000);
    }

    @Test
    public void responsesToNobodyAreLeftAlone() throws Exception {
        net.start("ebb");
        learn(3);
        net.peer = datagram -> { };
        Request request = net.send();
        net.runFor(200);
        Datagram copy = net.sent.get(1);
        byte[] wrong = copy.bytes.clone();
        wrong[0] = 0x68;
        wrong[1] = 0x45;
        wrong[4 + 7] = 99; // a copy that was not made
        net.deliver(wrong, 0);
        net.runFor(1);
        assertNull(request.getResponse());
        net.answer(copy, 0);
        net.runFor(1);
        assertNotNull(request.getResponse());
    }
}
