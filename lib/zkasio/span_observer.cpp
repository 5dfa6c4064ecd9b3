#include <zkasio/span_observer.hpp>

#include <zkasio/printable.hpp>

namespace zkasio {
namespace {

span begin(std::string name, span::span_kind kind, boot_clock::time_point from, boot_clock::time_point to) {
    span s;
    s.name = std::move(name);
    s.kind = kind;
    s.start = to_system_time(from);
    s.end = s.start + std::chrono::duration_cast<std::chrono::system_clock::duration>(to - from);
    s.attributes.push_back({"db.system.name", std::string("zookeeper")});
    return s;
}

void fail(span& s, const std::error_code& why) {
    s.failed = true;
    s.description = why.message();
    s.attributes.push_back({"error.type", std::string(why.category().name()) + ":" + std::to_string(why.value())});
}

void describe_lock(span& s, const std::string& path, lock_kind kind, std::int64_t token) {
    s.attributes.push_back({"zkasio.lock.path", printable(path)});
    s.attributes.push_back({"zkasio.lock.kind", std::string(to_string(kind))});
    if (token != 0) s.attributes.push_back({"zkasio.lock.token", token});
}

}  // namespace

void span_observer::operation(const operation_report& r) {
    if (r.internal) return;
    span s = begin(std::string(r.operation), span::span_kind::client, r.asked, r.ended);
    s.attributes.push_back({"db.operation.name", std::string(r.operation)});
    if (!r.path.empty()) s.attributes.push_back({"zkasio.path", printable(r.path)});
    s.attributes.push_back({"zkasio.queue_ns", std::int64_t(r.in_queue().count())});
    if (r.cancelled) s.attributes.push_back({"zkasio.cancelled", true});
    if (r.outcome_unknown) s.attributes.push_back({"zkasio.outcome_unknown", true});
    if (r.code) fail(s, r.code);
    finished(std::move(s));
}

void span_observer::lock_wait(const lock_wait_report& r) {
    span s = begin("lock wait", span::span_kind::internal, r.asked, r.ended);
    describe_lock(s, r.path, r.kind, r.token);
    s.attributes.push_back({"zkasio.lock.refused", r.refused});
    s.attributes.push_back({"zkasio.lock.handed_over", std::string(to_string(r.from))});
    s.attributes.push_back({"zkasio.lock.queue_length", std::int64_t(r.queue_length)});
    if (r.code) fail(s, r.code);
    finished(std::move(s));
}

void span_observer::lock_hold(const lock_hold_report& r) {
    span s = begin("lock hold", span::span_kind::internal, r.granted, r.ended);
    describe_lock(s, r.path, r.kind, r.token);
    if (r.lost != loss_reason::none) {
        s.failed = true;
        s.description = to_string(r.lost);
        s.attributes.push_back({"error.type", std::string(to_string(r.lost))});
    }
    finished(std::move(s));
}

}  // namespace zkasio
