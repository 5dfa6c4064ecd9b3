#include <zkasio/discovery/detail/roster.hpp>

#include <exception>
#include <utility>

namespace zkasio::discovery_detail {

void roster::set(const std::string& node, const node_state& state) {
    record& r = records_[node];
    r.round = round_;
    const bool same = r.counted && r.czxid == state.czxid;
    if (same && r.mzxid == state.mzxid && r.readable == state.readable) return;
    if (!same) r.counted = std::make_shared<incarnation>(++last_serial_, policy_);
    r.czxid = state.czxid;
    r.mzxid = state.mzxid;
    r.readable = state.readable;
    read(node, state, r);
}

// The filter and the weight are a user's: what they throw concerns this instance only.
void roster::read(const std::string& node, const node_state& state, record& into) {
    into.is.reset();
    into.pickable = false;
    into.why.clear();
    if (!state.readable) {
        into.why = "its ACL does not let us read it";
        return;
    }
    try {
        service_instance instance = service_instance::from_json(state.data);
        const bool pickable = instance.enabled() && (!filter_ || filter_(instance));
        const double weight = weight_ ? weight_(instance) : 1;
        into.is = std::make_shared<const member>(node, std::move(instance), weight, into.counted);
        into.pickable = pickable && into.is->weight > 0;
    } catch (const std::exception& e) {
        into.why = e.what();
    } catch (...) {
        into.why = "the filter or the weight function has thrown something";
    }
}

void roster::end_all() {
    std::erase_if(records_, [&](const auto& r) { return r.second.round != round_; });
}

listing roster::all() const {
    listing l;
    for (const auto& [node, r] : records_) {
        if (r.is)
            l.members.push_back(r.is);
        else
            l.unreadable.push_back({node, r.why});
    }
    return l;
}

std::vector<member_ptr> roster::pickable() const {
    std::vector<member_ptr> members;
    for (const auto& [node, r] : records_)
        if (r.pickable) members.push_back(r.is);
    return members;
}

}  // namespace zkasio::discovery_detail
