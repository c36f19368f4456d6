package coapace.californium;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;

import coapace.control.Mechanism;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.Exchange;
import org.eclipse.californium.elements.EndpointContext;
import org.eclipse.californium.elements.EndpointContextMatcher;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.util.ClockUtil;

/**
 * The destinations of an endpoint: MAX_ACTIVE_PEERS at most, each forgotten MAX_PEER_INACTIVITY_PERIOD after its last exchange. If
 * the table is full, the idlest is forgotten.
 */
final class Destinations {

    /** The most busy destinations to pass over in a search for an idle one. */
    private static final int MAX_SKIPPED = 8;

    final Mechanism mechanism;
    private final EndpointContextMatcher matcher;
    private final boolean isByAddress;
    private final int capacity;
    private final long patienceNanos;
    private final Map<Object, Entry> entries = new LinkedHashMap<>(16, 0.75f, true);

    private static final class Entry {
        final Destination destination;
        long usedNanos;

        Entry(Destination destination) {
            this.destination = destination;
        }
    }

    Destinations(Configuration config, EndpointContextMatcher matcher, Mechanism mechanism) {
        this.mechanism = mechanism;
        this.matcher = matcher;
        isByAddress = config.get(CoapConfig.CONGESTION_CONTROL_USE_INET_ADDRESS);
        capacity = config.get(CoapConfig.MAX_ACTIVE_PEERS);
        patienceNanos = config.get(CoapConfig.MAX_PEER_INACTIVITY_PERIOD, TimeUnit.NANOSECONDS);
    }

    /** Returns the destination of an exchange. A new one begins without knowledge. */
    Destination of(Exchange exchange) {
        Object key = key(exchange);
        long now = ClockUtil.nanoRealtime();
        synchronized (entries) {
            forgetIdle(now);
            Entry entry = entries.get(key);
            if (entry == null) {
                entry = new Entry(new Destination(mechanism.newController()));
                entries.put(key, entry);
            }
            entry.usedNanos = now;
            return entry.destination;
        }
    }

    /** Returns the destination of an exchange, or null if it is not known. */
    Destination find(Exchange exchange) {
        return find(key(exchange));
    }

    /** Returns the destination that a message came from, or null if it is not known. */
    Destination find(EndpointContext source) {
        return find(isByAddress ? source.getPeerAddress() : identity(source));
    }

    /** Returns the identity of a peer, or null if its context has none. */
    Object identity(EndpointContext context) {
        try {
            return matcher.getEndpointIdentity(context);
        } catch (IllegalArgumentException e) {
            return null; // a matcher by principals refuses a context without one
        }
    }

    int size() {
        synchronized (entries) {
            return entries.size();
        }
    }

    private Object key(Exchange exchange) {
        return isByAddress ? exchange.getRemoteSocketAddress() : exchange.getPeersIdentity();
    }

    private Destination find(Object key) {
        synchronized (entries) {
            Entry entry = key == null ? null : entries.get(key);
            return entry == null ? null : entry.destination;
        }
    }

    /** Keeps a place free for one more, and forgets at most two destinations that were idle for too long. */
    private void forgetIdle(long now) {
        int skipped = 0;
        int forgotten = 0;
        Iterator<Entry> eldest = entries.values().iterator();
        while (eldest.hasNext()) {
            Entry entry = eldest.next();
            boolean isFull = entries.size() >= capacity;
            if (!isFull && (forgotten >= 2 || now - entry.usedNanos <= patienceNanos)) {
                return;
            }
            if (entry.destination.isIdle() || isFull && skipped >= MAX_SKIPPED) {
                eldest.remove();
                forgotten++;
            } else if (!isFull && skipped >= MAX_SKIPPED) {
                return;
            } else {
                skipped++;
            }
        }
    }
}
