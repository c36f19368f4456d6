package coapace.californium;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;

import coapace.control.Controller;
import org.eclipse.californium.core.coap.Token;

/** What an endpoint knows about a destination. Guarded by itself. */
final class Destination {

    /** The most requests that wait for a place of NSTART. */
    static final int MAX_WAITING = 1000;

    final Controller controller;
    /** The exchanges that have departed and are not over. */
    final List<Flight> active = new ArrayList<>(1);
    private final ArrayDeque<Flight> waiting = new ArrayDeque<>(0);
    /** The requests among {@link #active}. */
    private int requests;
    /** The destination let the last timeout of an exchange pass, and nothing came from it since. */
    boolean isSilent;
    /** A job looks after those who wait. */
    boolean isWatched;
    /** It answers each copy with the token of that copy, and does not repeat its first answer (RFC 7252 §4.5). */
    boolean answersEach;
    /** The last exchange with a marked copy that was answered, and which transmission it answered. −1 without. */
    private int answeredMid = -1;
    private Token answeredToken;
    private int answeredOrdinal;

    Destination(Controller controller) {
        this.controller = controller;
    }

    synchronized boolean isIdle() {
        return active.isEmpty() && waiting.isEmpty();
    }

    synchronized boolean hasWaiting() {
        return !waiting.isEmpty();
    }

    synchronized void heard() {
        isSilent = false;
    }

    /** Lets a request start, or wait. Returns false if too many wait already. */
    synchronized boolean enter(Flight flight) {
        if (waiting.isEmpty() && requests < flight.nstart) {
            activate(flight);
        } else if (waiting.size() < MAX_WAITING) {
            flight.stage = Flight.Stage.WAITING;
            waiting.add(flight);
        } else {
            return false;
        }
        return true;
    }

    /** Takes the next request that may start, or null. */
    synchronized Flight next() {
        Flight flight = waiting.peek();
        if (flight == null || requests >= flight.nstart) {
            return null;
        }
        waiting.remove();
        activate(flight);
        return flight;
    }

    synchronized void activate(Flight flight) {
        flight.stage = Flight.Stage.ACTIVE;
        active.add(flight);
        requests += flight.isRequest ? 1 : 0;
    }

    /** Returns whether the exchange had departed. */
    synchronized boolean leave(Flight flight) {
        boolean wasActive = flight.stage == Flight.Stage.ACTIVE;
        if (wasActive) {
            active.remove(flight);
            requests -= flight.isRequest ? 1 : 0;
        } else if (flight.stage == Flight.Stage.WAITING) {
            waiting.remove(flight);
        }
        flight.stage = Flight.Stage.OVER;
        return wasActive;
    }

    synchronized void noteAnswer(int mid, Token token, int ordinal) {
        answeredMid = mid;
        answeredToken = token;
        answeredOrdinal = ordinal;
    }

    /**
     * Learns from a response that may be a second answer to the last exchange. If it names another transmission than the first, the
     * destination answers each copy.
     */
    synchronized void noteFurtherAnswer(int mid, Token token) {
        if (mid != answeredMid || answersEach) {
            return;
        }
        int ordinal = Marks.ordinal(answeredToken, token);
        if (ordinal >= 0 && ordinal != answeredOrdinal) {
            answersEach = true;
            answeredMid = -1;
            answeredToken = null;
        }
    }
}
