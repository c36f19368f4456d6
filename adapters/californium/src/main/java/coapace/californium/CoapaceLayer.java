package coapace.californium;

import java.util.ArrayList;
import java.util.concurrent.TimeUnit;

import org.eclipse.californium.core.coap.CoAP.Type;
import org.eclipse.californium.core.coap.EmptyMessage;
import org.eclipse.californium.core.coap.Message;
import org.eclipse.californium.core.coap.Request;
import org.eclipse.californium.core.coap.Response;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.Exchange;
import org.eclipse.californium.core.network.stack.ReliabilityLayer;
import org.eclipse.californium.core.network.stack.ReliabilityLayerParameters;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.util.ClockUtil;

/**
 * Californium's reliability layer with the timeouts of a mechanism for each destination. At most NSTART confirmable requests to a
 * destination are under way (RFC 7252 §4.7); others wait for their turn. Everything else is Californium's.
 *
 * <p>Californium calls it from the threads of its executor, one at a time for an exchange. The state of a destination has a lock of
 * its own, which is never held while other code is called.
 */
final class CoapaceLayer extends ReliabilityLayer {

    /** How often those who wait look for a place that was lost. */
    private static final long WATCH_MILLIS = 1000;

    final Destinations destinations;
    /** Null if nothing is marked. */
    final Marks marks;
    private final Patience patience;
    private final int nstart;
    private final long originNanos = ClockUtil.nanoRealtime();

    CoapaceLayer(Configuration config, Destinations destinations, Marks marks) {
        super(withOneMoreCopy(config));
        this.destinations = destinations;
        this.marks = marks;
        patience = new Patience(ReliabilityLayerParameters.builder().applyConfig(config).build());
        nstart = config.get(CoapConfig.NSTART);
    }

    /** Californium counts retransmissions. The last one is the copy of {@link Patience}. */
    private static Configuration withOneMoreCopy(Configuration config) {
        Configuration more = new Configuration(config);
        return more.set(CoapConfig.MAX_RETRANSMIT, config.get(CoapConfig.MAX_RETRANSMIT) + 1);
    }

    Patience patience() {
        return patience;
    }

    boolean isMarking() {
        return marks != null;
    }

    /** Returns the time since this layer was made, in microseconds. */
    long nowMicros() {
        // System.nanoTime, unless a test has replaced it.
        return micros(ClockUtil.nanoRealtime());
    }

    /** Returns the time from the origin of this layer to one of {@link ClockUtil#nanoRealtime}, in microseconds. */
    long micros(long nanos) {
        return (nanos - originNanos) / 1000;
    }

    void forget(Flight flight) {
        if (marks != null) {
            marks.forget(flight);
        }
    }

    @Override
    public void sendRequest(Exchange exchange, Request request) {
        boolean isConfirmable = request.getType() == null || request.getType() == Type.CON;
        if (!isConfirmable || request.isMulticast()) {
            super.sendRequest(exchange, request);
            return;
        }
        ReliabilityLayerParameters own = request.getReliabilityLayerParameters();
        Destination destination = destinations.of(exchange);
        Flight flight = new Flight(this, destination, exchange, request, own != null ? own.getNstart() : nstart);
        request.addMessageObserver(flight);
        if (!destination.enter(flight)) {
            request.setSendError(new IllegalStateException(Destination.MAX_WAITING
                    + " requests to this destination wait already; send fewer at once, or raise COAP.NSTART"));
        } else if (flight.isActive()) {
            depart(flight);
        } else {
            watch(destination);
        }
    }

    /** Lets requests start that wait for this destination. */
    void admit(Destination destination) {
        for (Flight flight = destination.next(); flight != null; flight = destination.next()) {
            Flight admitted = flight;
            admitted.exchange.execute(() -> {
                try {
                    depart(admitted);
                } catch (RuntimeException e) {
                    // The sender has returned, so nothing else would report it.
                    admitted.message.setSendError(e);
                }
            });
        }
    }

    private void depart(Flight flight) {
        Request request = (Request) flight.message;
        if (isOver(flight.exchange, request)) {
            flight.drop();
            return;
        }
        super.sendRequest(flight.exchange, request);
        if (isOver(flight.exchange, request)) {
            flight.drop();
        }
    }

    private static boolean isOver(Exchange exchange, Message message) {
        return exchange.isComplete() || message.isCanceled() || message.getSendError() != null;
    }

    /** A place that was lost would stop all requests to a destination, so those who wait look after it. */
    private void watch(Destination destination) {
        synchronized (destination) {
            if (destination.isWatched || executor.isShutdown()) {
                return;
            }
            destination.isWatched = true;
        }
        executor.schedule(() -> {
            ArrayList<Flight> active;
            synchronized (destination) {
                destination.isWatched = false;
                active = new ArrayList<>(destination.active);
            }
            active.forEach(Flight::checkLost);
            admit(destination);
            if (destination.hasWaiting()) {
                watch(destination);
            }
        }, WATCH_MILLIS, TimeUnit.MILLISECONDS);
    }

    @Override
    protected void prepareRequest(Exchange exchange, Request request) {
        super.prepareRequest(exchange, request);
        Flight flight = Flight.of(request);
        if (flight != null) {
            start(flight);
        }
    }

    @Override
    protected void prepareResponse(Exchange exchange, Response response) {
        super.prepareResponse(exchange, response);
        if (response.getType() == Type.CON && Flight.of(response) == null) {
            Destination destination = destinations.of(exchange);
            Flight flight = new Flight(this, destination, exchange, response, nstart);
            response.addMessageObserver(flight);
            destination.activate(flight);
            start(flight);
        }
    }

    /** Sets the first timeout. A message with parameters of its own keeps those, and Californium's timer. */
    private void start(Flight flight) {
        if (flight.message.getReliabilityLayerParameters() == null) {
            setTimeout(flight, flight.start(flight.exchange.getFailedTransmissionCount()));
        }
    }

    /** Californium asks for a timeout before a message is sent, the first time or again. */
    @Override
    protected void updateRetransmissionTimeout(Exchange exchange, ReliabilityLayerParameters parameters) {
        Message current = exchange.isOfLocalOrigin() ? exchange.getCurrentRequest() : exchange.getCurrentResponse();
        Flight flight = Flight.of(current);
        if (exchange.getFailedTransmissionCount() > 0 && flight != null && flight.isControlled()) {
            flight.keepContext();
            setTimeout(flight, flight.retransmit());
        } else {
            // The first timeout is set when the message is known: see start.
            super.updateRetransmissionTimeout(exchange, parameters);
        }
    }

    private static void setTimeout(Flight flight, long micros) {
        Exchange exchange = flight.exchange;
        // Californium refuses less than 2 ms.
        exchange.setCurrentTimeout((int) Math.max((micros + 999) / 1000, 2));
        if (flight.isLastWait()) {
            // Beyond the last count of withOneMoreCopy, so that Californium gives up after this.
            while (exchange.getFailedTransmissionCount() <= flight.maxRetransmit()) {
                exchange.incrementFailedTransmissionCount();
            }
        }
    }

    @Override
    public void receiveRequest(Exchange exchange, Request request) {
        Destination destination = destinations.find(exchange);
        if (destination != null) {
            destination.heard();
        }
        super.receiveRequest(exchange, request);
    }

    @Override
    public void receiveResponse(Exchange exchange, Response response) {
        Flight flight = response.isDuplicate() ? null : Flight.of(exchange.getCurrentRequest());
        if (flight != null) {
            flight.answered(Marks.ordinalOf(response), response.getNanoTimestamp());
            forget(flight);
        }
        super.receiveResponse(exchange, response);
    }

    @Override
    public void receiveEmptyMessage(Exchange exchange, EmptyMessage message) {
        Flight flight = Flight.of(exchange.isOfLocalOrigin() ? exchange.getCurrentRequest() : exchange.getCurrentResponse());
        if (flight != null && message.getType() == Type.ACK) {
            // It has no token, so it does not tell which transmission it answers.
            flight.answered(-1, message.getNanoTimestamp());
        } else if (flight != null) {
            flight.destination.heard();
        }
        super.receiveEmptyMessage(exchange, message);
    }
}
