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
    reading now = read(node, state, r);
    if (now.is) {
        set_readable(node);
        readable_.set(now.is);
    } else {
        readable_.erase(node);
        set_unreadable(node, std::move(now.why));
    }
    if (now.pickable)
        pickable_.set(std::move(now.is));
    else
        pickable_.erase(node);
}

// The format, the filter and the weight may be a user's: an exception makes only this instance unreadable.
roster::reading roster::read(const std::string& node, const node_state& state, const record& of) const {
    reading now;
    if (!state.readable) {
        now.why = "its ACL does not let us read it";
        return now;
    }
    try {
        service_instance instance = format_.read({service_, node, state.data});
        const bool pickable = instance.enabled() && (!filter_ || filter_(instance));
        const double weight = weight_ ? weight_(instance) : 1;
        now.is = std::make_shared<const member>(node, std::move(instance), weight, of.counted);
        now.pickable = pickable && now.is->weight > 0;
    } catch (const std::exception& e) {
        now.why = e.what();
    } catch (...) {
        now.why = "the format, the filter or the weight function has thrown something";
    }
    return now;
}

void roster::set_unreadable(const std::string& node, std::string why) {
    unreadable_[node] = std::move(why);
    unreadable_list_.reset();
}

void roster::set_readable(const std::string& node) {
    if (unreadable_.erase(node) > 0) unreadable_list_.reset();
}

void roster::erase(const std::string& node) {
    records_.erase(node);
    readable_.erase(node);
    pickable_.erase(node);
    set_readable(node);
}

void roster::end_all() {
    std::vector<std::string> gone;
    for (const auto& [node, r] : records_)
        if (r.round != round_) gone.push_back(node);
    for (const std::string& node : gone) erase(node);
}

listing roster::all() const {
    if (!unreadable_list_) {
        std::vector<unreadable_instance> list;
        list.reserve(unreadable_.size());
        for (const auto& [node, why] : unreadable_) list.push_back({node, why});
        unreadable_list_ = std::make_shared<const std::vector<unreadable_instance>>(std::move(list));
    }
    listing l;
    l.members = readable_;
    l.unreadable = unreadable_list_;
    return l;
}

}  // namespace zkasio::discovery_detail
