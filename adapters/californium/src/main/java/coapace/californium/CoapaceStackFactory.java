package coapace.californium;

import coapace.control.Mechanism;
import org.eclipse.californium.core.coap.CoAP;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.core.network.ExtendedCoapStackFactory;
import org.eclipse.californium.core.network.Outbox;
import org.eclipse.californium.core.network.stack.CoapStack;
import org.eclipse.californium.core.network.stack.CoapTcpStack;
import org.eclipse.californium.elements.EndpointContextMatcher;
import org.eclipse.californium.elements.config.Configuration;

/**
 * Runs a mechanism of Coapace in the endpoints that are built with it: {@link CoapEndpoint.Builder#setCoapStackFactory}, or
 * {@link CoapEndpoint#setDefaultCoapStackFactory} for all that have none of their own. CoAP over TCP stays as it is.
 *
 * <p>A factory may serve any number of endpoints. Each endpoint learns by itself.
 */
@SuppressWarnings("deprecation") // of the interface that ExtendedCoapStackFactory extends
public final class CoapaceStackFactory implements ExtendedCoapStackFactory {

    private final Mechanism mechanism;

    /**
     * Makes a factory.
     *
     * @param mechanism the mechanism for every destination
     * @throws NullPointerException if it is null
     */
    public CoapaceStackFactory(Mechanism mechanism) {
        if (mechanism == null) {
            throw new NullPointerException("the mechanism is null");
        }
        this.mechanism = mechanism;
    }

    /**
     * Makes a factory.
     *
     * @param mechanism the name of a mechanism in Coapace, such as {@code ebb}
     * @throws IllegalArgumentException if there is none of this name; the message lists the names
     */
    public CoapaceStackFactory(String mechanism) {
        this(Mechanism.named(mechanism));
    }

    @Override
    public CoapStack createCoapStack(String protocol, String tag, Configuration config, EndpointContextMatcher matcher,
            Outbox outbox, Object custom) {
        if (CoAP.isTcpProtocol(protocol)) {
            return new CoapTcpStack(tag, config, matcher, outbox);
        }
        return CoapaceStack.create(tag, config, matcher, outbox, mechanism);
    }

    /** Without a matcher, which endpoints of Californium 3.1 and later hand over, nothing is marked. */
    @Override
    public CoapStack createCoapStack(String protocol, String tag, Configuration config, Outbox outbox, Object custom) {
        return createCoapStack(protocol, tag, config, null, outbox, custom);
    }
}
