package coapace.californium;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.AbstractExecutorService;
import java.util.concurrent.Callable;
import java.util.concurrent.Delayed;
import java.util.concurrent.FutureTask;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;

/**
 * An executor without threads and without a clock: jobs run when {@link #settle()} is called, a timer when
 * {@link #fire()} is. So a timer can be looked at while it is armed, and goes off when the script says so.
 */
final class ManualExecutor extends AbstractExecutorService implements ScheduledExecutorService {

    private final ArrayDeque<Runnable> jobs = new ArrayDeque<>();
    private final List<Timer> timers = new ArrayList<>();

    /** A waiting job. Californium may cancel it, and the script lets it run. */
    private static final class Timer extends FutureTask<Void> implements ScheduledFuture<Void> {
        final long delayNanos;

        Timer(Runnable job, long delayNanos) {
            super(job, null);
            this.delayNanos = delayNanos;
        }

        @Override
        public long getDelay(TimeUnit unit) {
            return unit.convert(delayNanos, TimeUnit.NANOSECONDS);
        }

        @Override
        public int compareTo(Delayed other) {
            return Long.compare(delayNanos, other.getDelay(TimeUnit.NANOSECONDS));
        }
    }

    /** Runs the jobs that are ready, and those that become ready by that. */
    void settle() {
        for (Runnable job = jobs.poll(); job != null; job = jobs.poll()) {
            job.run();
        }
    }

    /** The delay of the armed timer in milliseconds, or null if none is armed. */
    Long armedMillis() {
        Timer timer = armed();
        return timer == null ? null : timer.getDelay(TimeUnit.MILLISECONDS);
    }

    /** Lets the armed timer expire. */
    void fire() {
        Timer timer = armed();
        if (timer == null) {
            throw new IllegalStateException("no timer is armed");
        }
        timer.run();
        settle();
    }

    /** An exchange has one timer at most, and there is one exchange at a time. */
    private Timer armed() {
        timers.removeIf(Timer::isDone);
        if (timers.size() > 1) {
            throw new IllegalStateException(timers.size() + " timers are armed");
        }
        return timers.isEmpty() ? null : timers.get(0);
    }

    @Override
    public void execute(Runnable job) {
        jobs.add(job);
    }

    @Override
    public ScheduledFuture<?> schedule(Runnable job, long delay, TimeUnit unit) {
        Timer timer = new Timer(job, unit.toNanos(delay));
        timers.add(timer);
        return timer;
    }

    /** Periodic jobs sweep tables and write statistics. They are never run. */
    @Override
    public ScheduledFuture<?> scheduleAtFixedRate(Runnable job, long first, long period, TimeUnit unit) {
        return new Timer(job, unit.toNanos(first));
    }

    @Override
    public ScheduledFuture<?> scheduleWithFixedDelay(Runnable job, long first, long delay, TimeUnit unit) {
        return new Timer(job, unit.toNanos(first));
    }

    @Override
    public <V> ScheduledFuture<V> schedule(Callable<V> job, long delay, TimeUnit unit) {
        throw new UnsupportedOperationException("Californium 3.14.0 schedules no callable");
    }

    @Override
    public void shutdown() {
        jobs.clear();
        timers.clear();
    }

    @Override
    public List<Runnable> shutdownNow() {
        shutdown();
        return List.of();
    }

    @Override
    public boolean isShutdown() {
        return false;
    }

    @Override
    public boolean isTerminated() {
        return false;
    }

    @Override
    public boolean awaitTermination(long timeout, TimeUnit unit) {
        return true;
    }
}
