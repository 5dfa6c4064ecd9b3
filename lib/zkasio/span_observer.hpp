#pragma once

#include <zkasio/client_observer.hpp>
#include <zkasio/export.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace zkasio {

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
/// lock and the time with the lock are internal spans. Derive from this class, and hand each span to your tracer. See
/// client_options::observer().
class ZKASIO_EXPORT span_observer : public client_observer {
public:
    virtual void finished(span s) = 0;

    void operation(const operation_report& r) override;
    void lock_wait(const lock_wait_report& r) override;
    void lock_hold(const lock_hold_report& r) override;
};

}  // namespace zkasio
