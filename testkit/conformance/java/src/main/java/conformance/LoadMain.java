package conformance;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Sends to a topic and consumes it, with the client's defaults and retries and nothing else, until SIGTERM: LoadMain NAMESRV TOPIC. The
 * exit status is 1 when a send failed beyond them, or something acknowledged is not consumed a minute after the last send.
 */
public final class LoadMain {
    private static final Map<String, Boolean> SENT = new ConcurrentHashMap<>();
    private static final Map<String, AtomicInteger> RECEIVED = new ConcurrentHashMap<>();
    private static final Map<String, String> FAILED = new ConcurrentHashMap<>();
    private static volatile boolean over;

    private LoadMain() {
    }

    public static void main(String[] args) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("java-load-producers");
        producer.setNamesrvAddr(args[0]);
        producer.start();
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("java-load-consumers");
        consumer.setNamesrvAddr(args[0]);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(args[1], "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt m : messages) {
                String body = new String(m.getBody(), StandardCharsets.UTF_8);
                RECEIVED.computeIfAbsent(body, b -> new AtomicInteger()).incrementAndGet();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        List<Thread> senders = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            int sender = i;
            Thread t = new Thread(() -> send(producer, args[1], sender, sender % 2 == 1));
            senders.add(t);
            t.start();
        }
        CountDownLatch judged = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            over = true;
            try {
                judged.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            System.out.flush();
            Runtime.getRuntime().halt(FAILED.isEmpty() ? 0 : 1);
        }));
        for (Thread t : senders) {
            t.join();
        }
        judge();
        judged.countDown();
    }

    /** One message after the other; the odd senders wait for a callback instead. */
    private static void send(DefaultMQProducer producer, String topic, int sender, boolean callback) {
        for (int n = 0; !over; n++) {
            String body = "java " + sender + "/" + n;
            Message m = new Message(topic, body.getBytes(StandardCharsets.UTF_8));
            try {
                if (!callback) {
                    sent(body, producer.send(m));
                } else {
                    CountDownLatch told = new CountDownLatch(1);
                    producer.send(m, new SendCallback() {
                        @Override
                        public void onSuccess(SendResult result) {
                            sent(body, result);
                            told.countDown();
                        }

                        @Override
                        public void onException(Throwable e) {
                            FAILED.put(body, java.time.LocalTime.now() + " " + e);
                            told.countDown();
                        }
                    });
                    told.await();
                }
                Thread.sleep(5);
            } catch (Exception e) {
                FAILED.put(body, java.time.LocalTime.now() + " " + e);
            }
        }
    }

    private static void sent(String body, SendResult result) {
        if (result.getSendStatus() == SendStatus.SEND_OK) {
            SENT.put(body, true);
        } else {
            FAILED.put(body, result.getSendStatus().toString());
        }
    }

    private static void judge() throws InterruptedException {
        long end = System.currentTimeMillis() + 60_000;
        while (!RECEIVED.keySet().containsAll(SENT.keySet()) && System.currentTimeMillis() < end) {
            Thread.sleep(100);
        }
        int failed = FAILED.size();
        int twice = RECEIVED.values().stream().mapToInt(n -> n.get() - 1).sum();
        int lost = 0;
        for (String body : SENT.keySet()) {
            if (!RECEIVED.containsKey(body)) {
                lost++;
                FAILED.put("lost " + body, "acknowledged and not consumed");
            }
        }
        System.out.printf("%d sends acknowledged, %d failed; %d messages consumed, %d of them again; %d lost%n",
            SENT.size(), failed, RECEIVED.size(), twice, lost);
        FAILED.entrySet().stream().limit(20).forEach(e -> System.out.println(e.getKey() + ": " + e.getValue()));
    }
}
