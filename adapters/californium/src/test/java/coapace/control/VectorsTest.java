package coapace.control;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.junit.Assert.fail;

import java.io.IOException;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import org.junit.Test;

/** Plays every row of vectors/*.csv whose mechanism is here. vectors/README.md describes the files. */
public class VectorsTest {

    private static final Path VECTORS = Paths.get("..", "..", "vectors");
    private static final String MECHANISM = "# mechanism ";

    /** An exchange under way. */
    private static final class Open {
        final Controller.Exchange exchange = new Controller.Exchange();
        final List<Long> departed = new ArrayList<>();
    }

    /** A run: one mechanism, one destination, and the exchanges with it. */
    private static final class Run {
        final Mechanism mechanism;
        final Controller controller;
        final Map<String, Open> open = new HashMap<>();
        List<String> columns;
        int rows;

        Run(Mechanism mechanism) {
            this.mechanism = mechanism;
            this.controller = mechanism.newController();
        }

        String field(List<String> fields, String column) {
            int place = columns.indexOf(column);
            return place < 0 || place >= fields.size() ? "" : fields.get(place);
        }
    }

    @Test
    public void everyMechanismAgreesWithItsFile() throws IOException {
        for (Mechanism mechanism : Mechanism.values()) {
            int rows = play(VECTORS.resolve(mechanism + ".csv"));
            assertTrue(mechanism + ".csv has " + rows + " rows", rows > 100);
        }
    }

    @Test
    public void workedNumbersAgree() throws IOException {
        assertTrue(play(VECTORS.resolve("worked.csv")) > 0);
    }

    @Test
    public void noOtherFileHasAMechanismOfOurs() throws IOException {
        try (DirectoryStream<Path> files = Files.newDirectoryStream(VECTORS, "*.csv")) {
            for (Path file : files) {
                String name = file.getFileName().toString().replace(".csv", "");
                boolean played = name.equals("worked");
                for (Mechanism mechanism : Mechanism.values()) {
                    played |= name.equals(mechanism.toString());
                }
                assertTrue(name + " is not played", played || play(file) == 0);
            }
        }
    }

    /** A player that compares nothing would pass. */
    @Test
    public void anotherMechanismDoesNotAgree() throws IOException {
        List<String> lines = new ArrayList<>(Files.readAllLines(VECTORS.resolve("ebb.csv"), StandardCharsets.UTF_8));
        lines.replaceAll(line -> line.equals(MECHANISM + "ebb") ? MECHANISM + "cocoa" : line);
        Path file = Files.createTempFile("vectors", ".csv");
        try {
            Files.write(file, lines, StandardCharsets.UTF_8);
            play(file);
        } catch (AssertionError expected) {
            return;
        } finally {
            Files.delete(file);
        }
        fail("cocoa agrees with the vectors of ebb");
    }

    @Test
    public void namesAreThoseOfCoapace() {
        assertEquals(Mechanism.LINUX_RTO, Mechanism.named("linux-rto"));
        try {
            Mechanism.named("reno");
            fail("there is no reno");
        } catch (IllegalArgumentException expected) {
            assertTrue(expected.getMessage().contains("ebb-plain"));
        }
    }

    /** Plays the runs of a file whose mechanism is here without parameters. Returns the number of rows. */
    private static int play(Path file) throws IOException {
        int rows = 0;
        int number = 0;
        Run run = null;
        for (String line : Files.readAllLines(file, StandardCharsets.UTF_8)) {
            String place = file.getFileName() + ":" + ++number;
            if (line.startsWith(MECHANISM)) {
                assertTrue(place + ": the run before has no rows", run == null || run.rows > 0);
                run = begin(line.substring(MECHANISM.length()));
            } else if (run != null) {
                List<String> fields = Arrays.asList(line.split(",", -1));
                if (run.columns == null) {
                    run.columns = fields;
                    for (String column : new String[] {"at_ms", "event", "draw", "answered", "timeout_ms", "rto_ms"}) {
                        assertTrue(place + ": no column " + column, fields.contains(column));
                    }
                } else {
                    step(run, fields, place);
                    run.rows++;
                    rows++;
                }
            }
        }
        assertTrue(file + ": the last run has no rows", run == null || run.rows > 0);
        return rows;
    }

    /** Returns null for a mechanism that is not here, or has parameters. */
    private static Run begin(String name) {
        for (Mechanism mechanism : Mechanism.values()) {
            if (mechanism.toString().equals(name)) {
                return new Run(mechanism);
            }
        }
        return null;
    }

    private static void step(Run run, List<String> fields, String place) {
        long now = micros(run.field(fields, "at_ms"));
        String drawText = run.field(fields, "draw");
        BigDecimal draw = drawText.isEmpty() ? BigDecimal.ZERO : new BigDecimal(drawText);
        int bits = draw.multiply(BigDecimal.valueOf(1L << 32)).setScale(0, RoundingMode.HALF_UP).intValue();
        String name = run.field(fields, "exchange");
        String event = run.field(fields, "event");
        Open open = run.open.get(name);
        assertEquals(place + ": " + event, event.equals("start"), open == null);
        long timeout = -1;
        if (event.equals("start")) {
            open = new Open();
            run.open.put(name, open);
            open.departed.add(now);
            timeout = run.controller.onStart(open.exchange, now, bits, run.open.size());
        } else if (event.equals("timeout")) {
            open.departed.add(now);
            timeout = run.controller.onRetransmit(open.exchange, now, bits, run.open.size());
        } else {
            if (event.equals("ack")) {
                run.controller.onAnswer(open.exchange, sample(run, open, now, run.field(fields, "answered")), now);
            } else if (event.equals("giveup")) {
                run.controller.onGiveUp(open.exchange, now);
            } else {
                assertEquals(place, "reset", event);
            }
            run.open.remove(name);
        }
        String expected = run.field(fields, "timeout_ms");
        assertEquals(place + ": armed", !expected.isEmpty(), timeout >= 0);
        if (timeout >= 0) {
            assertEquals(place + ": timeout", micros(expected), timeout, 1.0);
        }
        assertEquals(place + ": RTO", micros(run.field(fields, "rto_ms")), run.controller.rtoMicros(), 1.0);
    }

    private static Sample sample(Run run, Open open, long now, String answered) {
        int retransmits = open.departed.size() - 1;
        long sinceFirst = now - open.departed.get(0);
        long sinceLast = now - open.departed.get(retransmits);
        if (answered.isEmpty() || !run.mechanism.isMarking()) {
            return new Sample(sinceFirst, sinceLast, retransmits);
        }
        int ordinal = Integer.parseInt(answered);
        return new Sample(sinceFirst, sinceLast, retransmits, ordinal, now - open.departed.get(ordinal));
    }

    private static long micros(String millis) {
        return new BigDecimal(millis).movePointRight(3).longValueExact();
    }
}
