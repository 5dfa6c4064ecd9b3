import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Collections;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Apache Curator's InterProcessMutex, measured: README.md. */
public final class CuratorBench {
    private final String servers;
    private final CuratorFramework zk;
    private CuratorFramework other;  // of handoffs

    private CuratorBench(String servers) throws Exception {
        this.servers = servers;
        zk = connect(servers);
    }

    private static CuratorFramework connect(String servers) throws Exception {
        CuratorFramework zk = CuratorFrameworkFactory.builder()
                .connectString(servers).sessionTimeoutMs(10000).connectionTimeoutMs(10000)
                .retryPolicy(new ExponentialBackoffRetry(100, 5)).build();
        zk.start();
        if (!zk.blockUntilConnected(30, TimeUnit.SECONDS))
            throw new IllegalStateException("no connection to " + servers);
        return zk;
    }

    private String queue(String directory, int n) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(n);  // a thread can wait for one lock only
        Callable<Void> waiter = () -> {
            InterProcessMutex lock = new InterProcessMutex(zk, directory);
            lock.acquire();
            lock.release();
            return null;
        };
        for (Future<Void> f : threads.invokeAll(Collections.nCopies(n, waiter))) f.get();
        threads.shutdown();
        return "done";
    }

    private String cycles(String directory, double seconds) throws Exception {
        InterProcessMutex lock = new InterProcessMutex(zk, directory);
        long end = System.nanoTime() + (long) (seconds * 1e9);
        int count = 0;
        for (; System.nanoTime() < end; ++count) {
            lock.acquire();
            lock.release();
        }
        return "done " + count;
    }

    /** One of two that hand the lock to each other. It has a thread: a lock belongs to the thread that acquired it. */
    private static final class Contender {
        final CuratorFramework zk;
        final ExecutorService thread = Executors.newSingleThreadExecutor();
        final InterProcessMutex lock;

        Contender(CuratorFramework zk, String directory) {
            this.zk = zk;
            lock = new InterProcessMutex(zk, directory);
        }
        /** When it was granted. */
        Future<Long> acquire() {
            return thread.submit(() -> {
                lock.acquire();
                return System.nanoTime();
            });
        }
        /** When it began. */
        long release() throws Exception {
            return thread.submit(() -> {
                long start = System.nanoTime();
                lock.release();
                return start;
            }).get();
        }
    }

    private String handOffs(String directory, int count, int idleMs, int settling) throws Exception {
        if (other == null) other = connect(servers);
        Contender holder = new Contender(zk, directory), waiter = new Contender(other, directory);
        holder.acquire().get();
        int exists = 0;
        StringBuilder times = new StringBuilder();
        for (int i = 0; i < count; ++i) {
            Future<Long> granted = waiter.acquire();
            for (int k = 0, queued = 0; k < settling || queued < 2; ++k, ++exists)
                queued = waiter.zk.checkExists().forPath(directory).getNumChildren();
            if (idleMs > 0) Thread.sleep(idleMs);
            long start = holder.release();
            times.append(' ').append((granted.get() - start) * 1e-9);
            Contender next = waiter;
            waiter = holder;
            holder = next;
        }
        holder.release();
        holder.thread.shutdown();
        waiter.thread.shutdown();
        return "done " + exists + times;
    }

    private String run(String[] w) throws Exception {
        switch (w[0]) {
            case "queue": return queue(w[1], Integer.parseInt(w[2]));
            case "cycles": return cycles(w[1], Double.parseDouble(w[2]));
            case "handoffs":
                return handOffs(w[1], Integer.parseInt(w[2]), Integer.parseInt(w[3]), Integer.parseInt(w[4]));
            default: throw new IllegalArgumentException("no command " + w[0]);
        }
    }

    public static void main(String[] args) {
        try {
            CuratorBench bench = new CuratorBench(args[0]);
            System.out.println("ready");
            BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
            for (String line; (line = in.readLine()) != null;) System.out.println(bench.run(line.split(" ")));
            if (bench.other != null) bench.other.close();
            bench.zk.close();
            System.exit(0);
        } catch (Exception e) {
            e.printStackTrace();
            System.exit(1);  // with threads that still wait for the lock
        }
    }
}
