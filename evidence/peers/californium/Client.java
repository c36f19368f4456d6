import java.util.Scanner;
import org.eclipse.californium.core.CoapClient;
import org.eclipse.californium.core.CoapResponse;
import org.eclipse.californium.core.coap.CoAP.ResponseCode;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.elements.config.Configuration;

/**
 * Client ADDRESS PORT PATH PAYLOAD: for every number N on standard input, N GETs one after the other; prints how many were
 * answered with the payload.
 */
public final class Client {
    public static void main(String[] arguments) throws Exception {
        CoapConfig.register();
        Configuration configuration = Configuration.createStandardWithoutFile();
        CoapClient client = new CoapClient("coap", arguments[0], Integer.parseInt(arguments[1]), arguments[2]);
        client.setEndpoint(new CoapEndpoint.Builder().setConfiguration(configuration).build());
        Scanner input = new Scanner(System.in);
        while (input.hasNextInt()) {
            int answered = 0;
            for (int left = input.nextInt(); left > 0; left--) {
                CoapResponse response = client.get();
                if (response != null && response.getCode() == ResponseCode.CONTENT
                        && response.getResponseText().equals(arguments[3])) {
                    answered++;
                }
            }
            System.out.println(answered);
        }
        System.exit(0);
    }
}
