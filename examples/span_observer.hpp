#pragma once

// Spans for OpenTelemetry, made of the reports of a client: copy this file, and hand the spans to your tracer. The file
// itself needs no OpenTelemetry.

#include <zkasio/client_observer.hpp>
#include <zkasio/printable.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

namespace spans {

/// A finished span in OpenTelemetry's terms, with the arguments of a tracer's StartSpan(), SetAttribute(), SetStatus()
/// and End(). Attributes follow OpenTelemetry's semantic conventions for databases and messages (db.*, error.type);
/// attributes of zkasio's own begin with "zkasio.".
struct span {
    enum class span_kind : std::uint8_t { internal, client };
    using attribute = std::pair<std::string_view, std::variant<std::string, std::int64_t, bool>>;

    std::string name;  ///< of few different values, as it should be: "get", "lock wait" ...
    span_kind kind = span_kind::client;
    std::chrono::system_clock::time_point start{}, end{};
    bool failed = false;      ///< status Error, else Unset
    std::string description;  ///< of the status, if it has failed
    std::vector<attribute> attributes;
};

/// Makes spans of the reports of a client: a request is a span of kind client from its call to its end, a wait for a
/// lock, the time with the lock, a write of a queue, a counter or a transaction with all its attempts, and the work on
/// an item of a queue are internal spans. Derive from this class, and hand each span to your tracer. See
/// client_options::observer().
class span_observer : public zkasio::client_observer {
public:
    virtual void finished(span s) = 0;

    void operation(const zkasio::operation_report& r) override;
    void lock_wait(const zkasio::lock_wait_report& r) override;
    void lock_hold(const zkasio::lock_hold_report& r) override;
    void commit(const zkasio::commit_report& r) override;
    void delivery(const zkasio::delivery_report& r) override;
};

inline span begin_span(std::string name, span::span_kind kind, zkasio::boot_clock::time_point from,
                       zkasio::boot_clock::time_point to) {
    span s;
    s.name = std::move(name);
    s.kind = kind;
    s.start = zkasio::to_system_time(from);
    s.end = s.start + std::chrono::duration_cast<std::chrono::system_clock::duration>(to - from);
    s.attributes.push_back({"db.system.name", std::string("zookeeper")});
    return s;
}

inline void fail_span(span& s, const std::error_code& why) {
    s.failed = true;
    s.description = why.message();
    s.attributes.push_back({"error.type", std::string(why.category().name()) + ":" + std::to_string(why.value())});
}

inline void describe_lock(span& s, const std::string& path, zkasio::lock_kind kind, std::int64_t token) {
    s.attributes.push_back({"zkasio.lock.path", zkasio::printable(path)});
    s.attributes.push_back({"zkasio.lock.kind", std::string(to_string(kind))});
    if (token != 0) s.attributes.push_back({"zkasio.lock.token", token});
}

inline void span_observer::operation(const zkasio::operation_report& r) {
    if (r.internal) return;
    span s = begin_span(std::string(r.operation), span::span_kind::client, r.asked, r.ended);
    s.attributes.push_back({"db.operation.name", std::string(r.operation)});
    if (!r.path.empty()) s.attributes.push_back({"zkasio.path", zkasio::printable(r.path)});
    s.attributes.push_back({"zkasio.queue_ns", std::int64_t(r.in_queue().count())});
    if (r.cancelled) s.attributes.push_back({"zkasio.cancelled", true});
    if (r.outcome_unknown) s.attributes.push_back({"zkasio.outcome_unknown", true});
    if (r.code) fail_span(s, r.code);
    finished(std::move(s));
}

inline void span_observer::lock_wait(const zkasio::lock_wait_report& r) {
    span s = begin_span("lock wait", span::span_kind::internal, r.asked, r.ended);
    describe_lock(s, r.path, r.kind, r.token);
    s.attributes.push_back({"zkasio.lock.refused", r.refused});
    s.attributes.push_back({"zkasio.lock.handed_over", std::string(to_string(r.from))});
    s.attributes.push_back({"zkasio.lock.queue_length", std::int64_t(r.queue_length)});
    if (r.code) fail_span(s, r.code);
    finished(std::move(s));
}

inline void span_observer::lock_hold(const zkasio::lock_hold_report& r) {
    span s = begin_span("lock hold", span::span_kind::internal, r.granted, r.ended);
    describe_lock(s, r.path, r.kind, r.token);
    if (r.lost != zkasio::loss_reason::none) {
        s.failed = true;
        s.description = to_string(r.lost);
        s.attributes.push_back({"error.type", std::string(to_string(r.lost))});
    }
    finished(std::move(s));
}

inline void span_observer::commit(const zkasio::commit_report& r) {
    span s = begin_span("commit " + std::string(to_string(r.kind)), span::span_kind::internal, r.asked, r.ended);
    if (!r.path.empty()) s.attributes.push_back({"zkasio.path", zkasio::printable(r.path)});
    s.attributes.push_back({"zkasio.commit.parts", std::int64_t(r.parts)});
    s.attributes.push_back({"zkasio.commit.conflicts", std::int64_t(r.conflicts)});
    if (r.promoted) s.attributes.push_back({"zkasio.commit.promoted", true});
    if (r.outcome_unknown) s.attributes.push_back({"zkasio.outcome_unknown", true});
    if (r.code) fail_span(s, r.code);
    finished(std::move(s));
}

inline void span_observer::delivery(const zkasio::delivery_report& r) {
    span s = begin_span("delivery", span::span_kind::internal, r.claimed, r.ended);
    s.attributes.push_back({"zkasio.queue.path", zkasio::printable(r.path)});
    s.attributes.push_back({"zkasio.queue.item", zkasio::printable(r.item)});
    s.attributes.push_back({"zkasio.queue.attempt", std::int64_t(r.attempt)});
    s.attributes.push_back({"zkasio.queue.ended", std::string(to_string(r.how))});
    if (r.waited) s.attributes.push_back({"zkasio.queue.waited_ms", std::int64_t(r.waited->count())});
    if (r.how == zkasio::delivery_end::lost) {
        s.failed = true;
        s.description = to_string(r.lost);
        s.attributes.push_back({"error.type", std::string(to_string(r.lost))});
    }
    finished(std::move(s));
}

}  // namespace spans
