import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

/** Polls and approves with Java's own client, which asks for HTTP/2 (`Upgrade: h2c`) with every request. */
public class Approve {
    public static void main(String[] arguments) throws Exception {
        var url = URI.create(arguments[0]);
        var body = "{\"StartRequests\": [{\"EventId\": \"" + arguments[1] + "\"}]}";
        var client = HttpClient.newHttpClient();
        var approve = HttpRequest.newBuilder(url).header("Metadata", "true")
            .POST(HttpRequest.BodyPublishers.ofString(body)).build();
        var poll = HttpRequest.newBuilder(url).header("Metadata", "true").build();
        var approved = client.send(approve, HttpResponse.BodyHandlers.ofString());
        var polled = client.send(poll, HttpResponse.BodyHandlers.ofString());
        System.out.println(approved.statusCode() + " " + approved.version() + " " + approved.body());
        System.out.println(polled.statusCode() + " " + polled.version() + " " + polled.body());
    }
}
