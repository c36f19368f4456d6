package coapace.californium;

import coapace.control.Mechanism;
import org.eclipse.californium.core.network.Outbox;
import org.eclipse.californium.core.network.stack.BaseCoapStack;
import org.eclipse.californium.core.network.stack.BlockwiseLayer;
import org.eclipse.californium.core.network.stack.ExchangeCleanupLayer;
import org.eclipse.californium.core.network.stack.Layer;
import org.eclipse.californium.core.network.stack.ObserveLayer;
import org.eclipse.californium.elements.EndpointContextMatcher;
import org.eclipse.californium.elements.config.Configuration;

/** The layers of Californium's stack for UDP, with {@link CoapaceLayer} in place of its reliability layer. */
final class CoapaceStack extends BaseCoapStack {

    private CoapaceStack(Outbox outbox, Layer... layers) {
        super(outbox);
        setLayers(layers);
    }

    /** The matcher may be null: then nothing is marked. */
    static CoapaceStack create(String tag, Configuration config, EndpointContextMatcher matcher, Outbox outbox,
            Mechanism mechanism) {
        Destinations destinations = new Destinations(config, matcher, mechanism);
        Marks marks = mechanism.isMarking() && matcher != null ? new Marks(tag, outbox, destinations) : null;
        return new CoapaceStack(marks != null ? marks.outbox() : outbox, new ExchangeCleanupLayer(config), new ObserveLayer(config),
                new BlockwiseLayer(tag, false, config, matcher), new CoapaceLayer(config, destinations, marks));
    }
}
