package coapace.californium;

import org.eclipse.californium.core.network.stack.ReliabilityLayerParameters;

/**
 * How long Californium's own timer waits (RFC 7252 §4.8.2), from the numbers of its configuration. A mechanism says when to send a
 * copy, not when a peer is dead: on a path of a few milliseconds its timeouts together may take a tenth of a second.
 *
 * <p>So no exchange is given up before {@link #mostWait}. If the timeouts of the mechanism together are shorter than
 * {@link #leastWait}, one more copy departs {@link #mostSpan} after the first transmission. In no span of that length there are more
 * than MAX_RETRANSMIT + 1 transmissions. A peer that let the last timeout of an exchange pass is silent until something comes from
 * it. No timeout towards a silent peer is shorter than Californium's own.
 */
final class Patience {

    /** MAX_RETRANSMIT. */
    final int maxRetransmit;
    /** The shortest time until Californium gives up, in microseconds: 62 s with the numbers of RFC 7252. */
    final long leastWait;
    /** MAX_TRANSMIT_SPAN, the longest time until its last retransmission, in microseconds: 45 s. */
    final long mostSpan;
    /** MAX_TRANSMIT_WAIT, the longest time until it gives up, in microseconds: 93 s. */
    final long mostWait;

    /** Its shortest and longest timeout of each transmission, in milliseconds. */
    private final int[] shortest;
    private final int[] longest;

    Patience(ReliabilityLayerParameters parameters) {
        maxRetransmit = parameters.getMaxRetransmit();
        int first = parameters.getAckTimeout();
        shortest = timeouts(first, parameters);
        longest = timeouts((int) (first * parameters.getAckRandomFactor()), parameters);
        long least = 0;
        long most = 0;
        for (int n = 0; n <= maxRetransmit; n++) {
            least += shortest[n];
            most += longest[n];
        }
        leastWait = 1000 * least;
        mostWait = 1000 * most;
        mostSpan = 1000 * (most - longest[maxRetransmit]);
    }

    /** Each timeout is computed from the one before in whole milliseconds, like in Californium. */
    private static int[] timeouts(int first, ReliabilityLayerParameters parameters) {
        int[] timeouts = new int[parameters.getMaxRetransmit() + 1];
        int timeout = first;
        for (int n = 0; n < timeouts.length; n++) {
            timeout = Math.min(timeout, parameters.getMaxAckTimeout());
            timeouts[n] = timeout;
            timeout = (int) (parameters.getAckTimeoutScale() * timeout);
        }
        return timeouts;
    }

    /** Returns Californium's timeout after {@code retransmits} retransmissions, in microseconds, for a draw of 32 bits. */
    long timeout(int retransmits, int draw) {
        int n = Math.min(retransmits, maxRetransmit);
        long dither = longest[n] - shortest[n];
        return 1000 * (shortest[n] + (dither * (draw & 0xffffffffL) >> 32));
    }

    /**
     * Returns the time to wait after a transmission, in microseconds.
     *
     * @param timeout what the mechanism says
     * @param sinceFirst the time since the first transmission
     * @param retransmits the retransmissions so far, this one included
     * @param isSilent whether the peer let the last timeout of an exchange pass, and nothing came from it since
     * @param draw a random number of 32 bits
     */
    long wait(long timeout, long sinceFirst, int retransmits, boolean isSilent, int draw) {
        long wait = isSilent ? Math.max(timeout, timeout(retransmits, draw)) : timeout;
        if (retransmits < maxRetransmit) {
            return wait;
        }
        if (retransmits > maxRetransmit) {
            // If that copy is late, because the device slept, it has as long as between the least wait and the most.
            return Math.max(mostWait - leastWait, mostWait - sinceFirst);
        }
        long until = sinceFirst + wait >= leastWait ? mostWait : mostSpan;
        return Math.max(wait, until - sinceFirst);
    }

    /** Returns whether no further copy follows, if {@link #wait} returned {@code wait} for these arguments. */
    boolean isLastWait(long wait, long sinceFirst, int retransmits) {
        return retransmits > maxRetransmit || retransmits == maxRetransmit && sinceFirst + wait >= mostWait;
    }
}
