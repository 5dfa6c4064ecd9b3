#pragma once

#include <zkasio/discovery/detail/member_list.hpp>
#include <zkasio/discovery/instance_format.hpp>
#include <zkasio/discovery/service_instance.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zkasio::discovery_detail {

/// The content of a service_view.
struct listing {
    std::uint64_t version = 0;
    bool current = false;
    member_list members;
    std::shared_ptr<const std::vector<unreadable_instance>> unreadable;  // never null
};
using listing_ptr = std::shared_ptr<const listing>;

struct make_service_view {
    static service_view of(listing_ptr l) noexcept { return service_view(std::move(l)); }
};

/// The state of one node, as a server has reported it.
struct node_state {
    std::string_view data;
    std::int64_t czxid = 0, mzxid = 0;
    bool readable = true;
};

/// Turns nodes into instances. The rules:
///
///   - R1: a node of the same name and the same czxid is the same incarnation: its counts are kept when its data
///     change. For any other node the counts begin at 0.
///   - R2: a node whose data are no instance is listed as unreadable, with the reason, and is not picked. Its
///     incarnation is kept, because the data may be repaired.
///   - R3: one state of one node is evaluated only once: the data, and the user's filter and weight.
class roster {
public:
    using weight_function = std::function<double(const service_instance&)>;
    using filter_function = std::function<bool(const service_instance&)>;

    roster(weight_function weight, filter_function filter, ejection_policy policy, instance_format format = {},
           std::string service = {})
        : weight_(std::move(weight)),
          filter_(std::move(filter)),
          policy_(policy),
          format_(std::move(format)),
          service_(std::move(service)) {}

    void set(const std::string& node, const node_state& state);
    void erase(const std::string& node);
    /// end_all() erases all nodes that were not set since the last begin_all().
    void begin_all() noexcept { ++round_; }
    void end_all();

    /// All known instances, in the order of the names.
    listing all() const;
    /// The instances that may be picked: enabled, and let through by the filter.
    const member_list& pickable() const noexcept { return pickable_; }

private:
    struct record {
        std::int64_t czxid = 0, mzxid = 0;
        bool readable = true;
        std::uint64_t round = 0;
        std::shared_ptr<incarnation> counted;
    };
    struct reading {
        member_ptr is;  // null: unreadable
        bool pickable = false;
        std::string why;
    };
    reading read(const std::string& node, const node_state& state, const record& of) const;
    void set_unreadable(const std::string& node, std::string why);
    void set_readable(const std::string& node);

    weight_function weight_;
    filter_function filter_;
    ejection_policy policy_;
    instance_format format_;
    std::string service_;
    std::map<std::string, record> records_;
    // Derived from `records_`, and updated with each change of `records_`:
    member_list readable_, pickable_;
    std::map<std::string, std::string> unreadable_;                                    // the reason, by the node's name
    mutable std::shared_ptr<const std::vector<unreadable_instance>> unreadable_list_;  // null: to be rebuilt
    std::uint64_t last_serial_ = 0, round_ = 0;
};

}  // namespace zkasio::discovery_detail
