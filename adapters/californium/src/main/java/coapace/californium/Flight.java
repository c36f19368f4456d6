package coapace.californium;

import java.util.Arrays;
import java.util.concurrent.ThreadLocalRandom;

import coapace.control.Controller;
import coapace.control.Sample;
import org.eclipse.californium.core.coap.Message;
import org.eclipse.californium.core.coap.MessageObserver;
import org.eclipse.californium.core.coap.MessageObserverAdapter;
import org.eclipse.californium.core.coap.Request;
import org.eclipse.californium.core.network.Exchange;
import org.eclipse.californium.elements.DtlsEndpointContext;
import org.eclipse.californium.elements.EndpointContext;

/**
 * A confirmable message under way: a request, a block of one, or a response. It observes its message, so Californium keeps it as long
 * as that. Guarded by its destination.
 */
final class Flight extends MessageObserverAdapter {

    enum Stage {
        NEW, WAITING, ACTIVE, OVER
    }

    final CoapaceLayer layer;
    final Destination destination;
    final Exchange exchange;
    final Message message;
    final boolean isRequest;
    /** NSTART: the most requests to the destination that are under way when this one starts. */
    final int nstart;
    Stage stage = Stage.NEW;

    private final Patience patience;
    /** Null until it starts, and if the message has timeouts of its own. */
    private Controller.Exchange control;
    /** Of each transmission, in microseconds: when it departed, and how long to wait after that. */
    private final long[] departed;
    private final long[] timeouts;
    private int retransmits;
    /** The context in which the last transmission was sent. */
    private volatile EndpointContext context;
    /** Whether all retransmissions carry their ordinal. */
    private boolean isMarked;

    Flight(CoapaceLayer layer, Destination destination, Exchange exchange, Message message, int nstart) {
        super(true);
        this.layer = layer;
        this.destination = destination;
        this.exchange = exchange;
        this.message = message;
        this.nstart = nstart;
        isRequest = message instanceof Request;
        // A server would notify with the marked token ever after, so an observation keeps its token. A ping has none.
        isMarked = isRequest && layer.isMarking() && message.getRawCode() != 0 && !message.getOptions().hasObserve();
        patience = layer.patience();
        departed = new long[patience.maxRetransmit + 2];
        timeouts = new long[departed.length];
    }

    /** Returns the flight of a message, or null. Observers of a body are copied to its blocks: those are passed over. */
    static Flight of(Message message) {
        if (message != null) {
            for (MessageObserver observer : message.getMessageObservers()) {
                if (observer instanceof Flight && ((Flight) observer).message == message) {
                    return (Flight) observer;
                }
            }
        }
        return null;
    }

    boolean isActive() {
        synchronized (destination) {
            return stage == Stage.ACTIVE;
        }
    }

    int maxRetransmit() {
        return patience.maxRetransmit;
    }

    /** Returns whether the mechanism computes its timeouts. */
    boolean isControlled() {
        synchronized (destination) {
            return stage == Stage.ACTIVE && control != null;
        }
    }

    /**
     * The first transmission departs. Returns the time to wait, in microseconds. A notification may replace one that was sent
     * {@code already} times without an answer: it goes on with the next timeout.
     */
    long start(int already) {
        synchronized (destination) {
            long now = layer.nowMicros();
            int draw = ThreadLocalRandom.current().nextInt();
            control = new Controller.Exchange();
            long timeout = destination.controller.onStart(control, now, draw, destination.active.size());
            for (int n = 0; n < already; n++) {
                timeout = destination.controller.onRetransmit(control, now, draw, destination.active.size());
            }
            retransmits = Math.min(already, departed.length - 1);
            Arrays.fill(departed, 0, retransmits + 1, now);
            return arm(timeout, now, draw);
        }
    }

    /** A retransmission departs. Returns the time to wait, in microseconds. */
    long retransmit() {
        synchronized (destination) {
            long now = layer.nowMicros();
            int draw = ThreadLocalRandom.current().nextInt();
            retransmits = Math.min(retransmits + 1, departed.length - 1);
            departed[retransmits] = now;
            return arm(destination.controller.onRetransmit(control, now, draw, destination.active.size()), now, draw);
        }
    }

    private long arm(long timeout, long now, int draw) {
        long sinceFirst = now - departed[0];
        destination.isSilent |= retransmits > patience.maxRetransmit;
        long wait = patience.wait(timeout, sinceFirst, retransmits, destination.isSilent, draw);
        timeouts[retransmits] = wait;
        return wait;
    }

    /**
     * Californium forgets the endpoint context before a retransmission, and drops answers until the connector reports it again. With
     * a close timeout, the answer to the transmission before comes just then. With DTLS a retransmission may begin another session,
     * so there it stays forgotten.
     */
    void keepContext() {
        EndpointContext known = context;
        if (known != null && exchange.getEndpointContext() == null && known.getString(DtlsEndpointContext.KEY_SESSION_ID) == null) {
            exchange.setEndpointContext(known);
        }
    }

    /** Returns whether the exchange fails when the time to wait has passed. */
    boolean isLastWait() {
        synchronized (destination) {
            return patience.isLastWait(timeouts[retransmits], departed[retransmits] - departed[0], retransmits);
        }
    }

    /** Returns the ordinal of the transmission that departs, or 0 if it is not to be marked. */
    int ordinal() {
        synchronized (destination) {
            return isMarked ? retransmits : 0;
        }
    }

    /** Returns whether a transmission with this ordinal was made. */
    boolean hasMade(int ordinal) {
        synchronized (destination) {
            return ordinal <= retransmits;
        }
    }

    void leaveUnmarked() {
        synchronized (destination) {
            isMarked = false;
        }
    }

    /**
     * The connector has sent it, and noted the time before it did. With DTLS a handshake may have come first, which does not count as
     * round trip.
     */
    @Override
    public void onSent(boolean isCopy) {
        context = exchange.getEndpointContext();
        synchronized (destination) {
            if (stage == Stage.ACTIVE && control != null) {
                departed[retransmits] = Math.max(departed[retransmits], layer.micros(message.getNanoTimestamp()));
            }
        }
    }

    /**
     * An answer has arrived.
     *
     * @param ordinal the transmission that it answers, or −1 if it does not tell
     * @param nanos when the connector received it. The time in queues of this program, and of its first classes to be loaded, does not
     *              count as round trip
     */
    void answered(int ordinal, long nanos) {
        synchronized (destination) {
            destination.isSilent = false;
            if (!destination.leave(this)) {
                return;
            }
            if (control != null) {
                long now = layer.nowMicros();
                long received = layer.micros(nanos);
                // A connector that knows no time leaves 0.
                long arrived = received > now || received < departed[0] ? now : received;
                destination.controller.onAnswer(control, sample(arrived, ordinal), now);
            }
        }
        layer.admit(destination);
    }

    private Sample sample(long arrived, int ordinal) {
        long sinceFirst = arrived - departed[0];
        // It may have waited here while a copy departed.
        long sinceLast = Math.max(arrived - departed[retransmits], 0);
        if (!isMarked || ordinal < 0 || ordinal > retransmits || retransmits == 0) {
            return new Sample(sinceFirst, sinceLast, retransmits);
        }
        if (!destination.answersEach) {
            destination.noteAnswer(message.getMID(), message.getToken(), ordinal);
        }
        long since = Math.max(arrived - departed[ordinal], 0);
        // A server may have repeated an old answer for a later copy (RFC 7252 §4.5).
        if (!destination.answersEach && ordinal < retransmits && since >= timeouts[ordinal]) {
            return new Sample(sinceFirst, sinceLast, retransmits);
        }
        return new Sample(sinceFirst, sinceLast, retransmits, ordinal, since);
    }

    /** It ends without an answer, and nothing is learnt. */
    void drop() {
        layer.forget(this);
        synchronized (destination) {
            if (stage == Stage.OVER) {
                return;
            }
            destination.leave(this);
        }
        layer.admit(destination);
    }

    @Override
    public void onTimeout() {
        layer.forget(this);
        synchronized (destination) {
            if (!destination.leave(this)) {
                return;
            }
            destination.isSilent = true;
            if (control != null) {
                destination.controller.onGiveUp(control, layer.nowMicros());
            }
        }
        layer.admit(destination);
    }

    @Override
    public void onReject() {
        drop();
    }

    @Override
    public void onCancel() {
        drop();
    }

    @Override
    public void onSendError(Throwable error) {
        drop();
    }

    /** Frees the place of NSTART if the exchange has ended unnoticed, or its timer was never started. */
    void checkLost() {
        boolean isLost;
        synchronized (destination) {
            long due = departed[retransmits] + timeouts[retransmits] + patience.mostWait;
            isLost = exchange.isComplete() || control != null && layer.nowMicros() > due;
        }
        if (isLost) {
            drop();
        }
    }
}
