package coapace.control;

import java.util.function.Supplier;

/**
 * A mechanism: how long to wait for an acknowledgement before a confirmable message is sent again. It does the arithmetic of
 * Coapace's {@code crates/control/src/registry} and {@code c/coapace.c}.
 */
public enum Mechanism {

    /** A timeout of 2 to 3 s, doubled by every retransmission (RFC 7252 §4.2). */
    DEFAULT("default", false, DefaultController::new),
    /** The timer of TCP (RFC 6298). */
    LINUX_RTO("linux-rto", false, LinuxRtoController::new),
    /** CoCoA (draft-ietf-core-cocoa-03 §4). */
    COCOA("cocoa", false, CocoaController::new),
    /** FASOR (draft-ietf-core-fasor-02), without a marking. */
    FASOR("fasor", false, FasorController::new),
    /** FASOR with the ordinal of a retransmission in its token. */
    FASOR_TOKEN("fasor-token", true, FasorController::new),
    /** Coapace's own mechanism (docs/ebb.md), with the ordinal of a retransmission in its token. */
    EBB("ebb", true, EbbController::new),
    /** {@link #EBB} without a marking. */
    EBB_PLAIN("ebb-plain", false, EbbController::new);

    private final String text;
    private final boolean marking;
    private final Supplier<Controller> controllers;

    Mechanism(String text, boolean marking, Supplier<Controller> controllers) {
        this.text = text;
        this.marking = marking;
        this.controllers = controllers;
    }

    /**
     * Finds a mechanism by its name in Coapace.
     *
     * @param name a name such as {@code ebb} or {@code linux-rto}
     * @return the mechanism
     * @throws IllegalArgumentException if there is none of this name; the message lists the names
     */
    public static Mechanism named(String name) {
        StringBuilder names = new StringBuilder();
        for (Mechanism mechanism : values()) {
            if (mechanism.text.equals(name)) {
                return mechanism;
            }
            names.append(names.length() == 0 ? "" : ", ").append(mechanism.text);
        }
        throw new IllegalArgumentException("no mechanism is called " + name + "; there are " + names);
    }

    /**
     * Makes the state of a destination, before the first exchange with it.
     *
     * @return a new state
     */
    public Controller newController() {
        return controllers.get();
    }

    /**
     * Returns whether retransmissions have to carry their ordinal as a further byte of the token, so that an answer names the
     * transmission it answers. A stack that cannot do so leaves {@link Sample#answered} at −1, and the mechanism learns less.
     *
     * @return whether retransmissions are marked
     */
    public boolean isMarking() {
        return marking;
    }

    /** Returns the name in Coapace, such as {@code linux-rto}. */
    @Override
    public String toString() {
        return text;
    }
}
