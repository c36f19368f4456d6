package coapace.californium;

import java.util.Arrays;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicBoolean;

import org.eclipse.californium.core.coap.CoAP.Type;
import org.eclipse.californium.core.coap.EmptyMessage;
import org.eclipse.californium.core.coap.MessageObserverAdapter;
import org.eclipse.californium.core.coap.Request;
import org.eclipse.californium.core.coap.Response;
import org.eclipse.californium.core.coap.Token;
import org.eclipse.californium.core.network.Exchange;
import org.eclipse.californium.core.network.KeyToken;
import org.eclipse.californium.core.network.Outbox;
import org.eclipse.californium.core.network.interceptors.MessageInterceptorAdapter;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Marks retransmissions of requests: the ordinal follows the token, as one more byte. The server returns it unread (RFC 7252 §5.3.1).
 *
 * <p>Californium does not notice. On the way out only the bytes of the datagram change, on the way in the token of the response is
 * restored before the endpoint looks for its exchange.
 */
final class Marks extends MessageInterceptorAdapter {

    private static final Logger LOGGER = LoggerFactory.getLogger(Marks.class);
    private static final int MAX_TOKEN = 8;
    private static final int HEADER = 4;
    /** With more entries than this, those of exchanges that ended unnoticed are looked for. */
    private static final int MANY = 1024;

    private final String tag;
    private final Outbox next;
    private final Destinations destinations;
    /** The requests with a marked copy whose response is awaited, by their own token. */
    private final ConcurrentMap<KeyToken, Flight> flights = new ConcurrentHashMap<>();
    private final AtomicBoolean isListening = new AtomicBoolean();
    private final AtomicBoolean hasWarned = new AtomicBoolean();

    /** The ordinal that the token of a response had. */
    private static final class Mark extends MessageObserverAdapter {
        final int ordinal;

        Mark(int ordinal) {
            super(true);
            this.ordinal = ordinal;
        }
    }

    Marks(String tag, Outbox next, Destinations destinations) {
        this.tag = tag;
        this.next = next;
        this.destinations = destinations;
    }

    /** Returns which transmission a response answers by its token. */
    static int ordinalOf(Response response) {
        Mark mark = response.getMessageObserver(Mark.class);
        return mark != null ? mark.ordinal : 0;
    }

    /** Returns the ordinal that a received token carries beyond this one, 0 if it is the same, −1 if it is another token. */
    static int ordinal(Token own, Token received) {
        if (received.equals(own)) {
            return 0;
        }
        byte[] bytes = received.getBytes();
        boolean isLonger = bytes.length == own.length() + 1 && own.equals(prefix(bytes));
        return isLonger && bytes[bytes.length - 1] != 0 ? bytes[bytes.length - 1] & 0xff : -1;
    }

    private static Token prefix(byte[] bytes) {
        return new Token(Arrays.copyOf(bytes, bytes.length - 1));
    }

    /** Returns the way out of the stack. */
    Outbox outbox() {
        return new Outbox() {

            @Override
            public void sendRequest(Exchange exchange, Request request) {
                Marks.this.sendRequest(exchange, request);
            }

            @Override
            public void sendResponse(Exchange exchange, Response response) {
                next.sendResponse(exchange, response);
            }

            @Override
            public void sendEmptyMessage(Exchange exchange, EmptyMessage message) {
                next.sendEmptyMessage(exchange, message);
            }
        };
    }

    private void sendRequest(Exchange exchange, Request request) {
        Flight flight = Flight.of(request);
        int ordinal = flight != null ? flight.ordinal() : 0;
        byte[] plain = request.getBytes();
        // The first transmission has no bytes yet: they are made below this.
        if (ordinal == 0 || plain == null) {
            next.sendRequest(exchange, request);
            return;
        }
        Token token = request.getToken();
        int length = token.length();
        if (length >= MAX_TOKEN || exchange.getEndpoint() == null) {
            if (length >= MAX_TOKEN && hasWarned.compareAndSet(false, true)) {
                LOGGER.warn("{}tokens of 8 bytes leave no room to mark copies; set COAP.TOKEN_SIZE_LIMIT to 7", tag);
            }
            flight.leaveUnmarked();
            next.sendRequest(exchange, request);
            return;
        }
        if (isListening.compareAndSet(false, true)) {
            exchange.getEndpoint().addInterceptor(this);
        }
        if (flights.size() >= MANY) {
            flights.values().removeIf(other -> other.exchange.isComplete());
        }
        flights.put(key(flight), flight);
        byte[] marked = new byte[plain.length + 1];
        System.arraycopy(plain, 0, marked, 0, HEADER + length);
        marked[0]++; // the length of the token is in the lowest bits
        marked[HEADER + length] = (byte) ordinal;
        System.arraycopy(plain, HEADER + length, marked, HEADER + length + 1, plain.length - HEADER - length);
        request.setBytes(marked);
        try {
            next.sendRequest(exchange, request);
        } finally {
            request.setBytes(plain);
        }
    }

    @Override
    public void receiveResponse(Response response) {
        Token token = response.getToken();
        Destination destination = destinations.find(response.getSourceContext());
        if (token == null || token.isEmpty() || destination == null) {
            return;
        }
        if (response.getType() == Type.ACK) {
            destination.noteFurtherAnswer(response.getMID(), token);
        }
        byte[] received = token.getBytes();
        int ordinal = received[received.length - 1] & 0xff;
        Object peer = destinations.identity(response.getSourceContext());
        Flight flight = ordinal == 0 || peer == null ? null : flights.get(new KeyToken(prefix(received), peer));
        if (flight == null || !flight.hasMade(ordinal)) {
            return;
        }
        byte[] bytes = response.getBytes();
        response.setBytes(null); // or the token could not be changed
        response.setToken(prefix(received));
        response.setBytes(bytes);
        response.addMessageObserver(new Mark(ordinal));
    }

    /** The response has come, or will not. */
    void forget(Flight flight) {
        if (flight.message.getToken() != null) {
            flights.remove(key(flight), flight);
        }
    }

    int size() {
        return flights.size();
    }

    private static KeyToken key(Flight flight) {
        return new KeyToken(flight.message.getToken(), flight.exchange.getPeersIdentity());
    }
}
