// docs/coming-from.md: how it is done with Curator, compiled and run: ComingFrom SERVERS
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.retry.ExponentialBackoffRetry;

public class ComingFrom {
    private static byte[] text(String s) { return s.getBytes(StandardCharsets.UTF_8); }
    private static void work(String what) { System.out.println("Curator: " + what); }

    // [connect]
    static CuratorFramework connect(String servers) {
        CuratorFramework zk = CuratorFrameworkFactory.builder()
            .connectString(servers).sessionTimeoutMs(10000)
            .retryPolicy(new ExponentialBackoffRetry(50, 8)).build();
        zk.start();
        return zk;
    }
    // [/connect]

    // [lock]
    static boolean lock(CuratorFramework zk) throws Exception {
        InterProcessMutex lock = new InterProcessMutex(zk, "/guide/shared-lock");
        if (!lock.acquire(5, TimeUnit.SECONDS)) return false;
        try {
            work("under the lock");
        } finally {
            lock.release();
        }
        return true;
    }
    // [/lock]

    // [readers]
    static void readers(CuratorFramework zk) throws Exception {
        InterProcessReadWriteLock prices = new InterProcessReadWriteLock(zk, "/guide/shared-prices");
        prices.readLock().acquire();
        try {
            work("as a reader");
        } finally {
            prices.readLock().release();
        }
    }
    // [/readers]

    // [semaphore]
    static void permit(CuratorFramework zk) throws Exception {
        InterProcessSemaphoreV2 pool = new InterProcessSemaphoreV2(zk, "/guide/shared-pool", 3);
        Lease lease = pool.acquire();
        try {
            work("with one of three permits");
        } finally {
            pool.returnLease(lease);
        }
    }
    // [/semaphore]

    // [several]
    static void several(CuratorFramework zk) throws Exception {
        InterProcessMultiLock both = new InterProcessMultiLock(
            java.util.Arrays.asList(new InterProcessMutex(zk, "/guide/account-a"),
                                    new InterProcessMutex(zk, "/guide/account-b")));
        both.acquire();
        try {
            work("with both accounts");
        } finally {
            both.release();
        }
    }
    // [/several]

    // [election]
    static void lead(CuratorFramework zk) throws Exception {
        try (LeaderLatch latch = new LeaderLatch(zk, "/guide/shared-leader", "host-7")) {
            latch.start();
            latch.await();
            while (latch.hasLeadership()) {  // asked again and again by the work itself
                work("as the leader");
                break;
            }
        }
    }
    // [/election]

    // [group]
    static void join(CuratorFramework zk) throws Exception {
        GroupMember member = new GroupMember(zk, "/guide/shared-group", "curator-7", text("10.0.0.7:80"));
        member.start();
        while (!member.getCurrentMembers().containsKey("curator-7")) Thread.sleep(10);
        work("one of " + member.getCurrentMembers().size());
        member.close();
    }
    // [/group]

    // [cache]
    static void cache(CuratorFramework zk) throws Exception {
        CuratorCache prices = CuratorCache.build(zk, "/guide/shared-tree");
        java.util.concurrent.CountDownLatch ready = new java.util.concurrent.CountDownLatch(1);
        prices.listenable().addListener(CuratorCacheListener.builder()
            .forChanges((before, after) -> work(after.getPath() + " has changed"))
            .forInitialized(ready::countDown).build());
        prices.start();
        ready.await();
        prices.get("/guide/shared-tree").ifPresent(node -> work(new String(node.getData(), StandardCharsets.UTF_8)));
        prices.close();
    }
    // [/cache]

    public static void main(String[] args) throws Exception {
        try (CuratorFramework zk = connect(args[0])) {
            zk.create().orSetData().creatingParentsIfNeeded().forPath("/guide/shared-tree", text("tea 350"));
            if (!lock(zk)) throw new IllegalStateException("the lock was free");
            readers(zk);
            permit(zk);
            several(zk);
            lead(zk);
            join(zk);
            cache(zk);
        }
    }
}
