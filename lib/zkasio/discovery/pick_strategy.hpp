#pragma once

#include <zkasio/discovery/service_instance.hpp>

#include <functional>
#include <utility>

namespace zkasio {

/// How provider::pick() chooses an instance. Every strategy leaves out ejected instances; their share is spread over
/// the other instances.
class pick_strategy {
public:
    enum class kind { round_robin, random, least_outstanding, sticky, weighted };

    /// One instance after another, for each thread. The default.
    static pick_strategy round_robin() { return pick_strategy(kind::round_robin); }
    static pick_strategy random() { return pick_strategy(kind::random); }
    /// An instance with the fewest `picked` objects of this provider; looks at all instances each time.
    static pick_strategy least_outstanding() { return pick_strategy(kind::least_outstanding); }
    /// One instance, drawn at random, and picked again and again until it is removed or ejected.
    static pick_strategy sticky() { return pick_strategy(kind::sticky); }
    /// At random, each instance in proportion to its weight. `weight(instance)` is called once for each state of an
    /// instance, on the client's strand. If `weight` throws, the instance is unreadable. If the weight is 0, negative,
    /// or not a finite number, the instance is not picked. See also service_instance::payload_number().
    static pick_strategy weighted(std::function<double(const service_instance&)> weight) {
        pick_strategy s(kind::weighted);
        s.weight_ = std::move(weight);
        return s;
    }

    kind how() const noexcept { return kind_; }
    const std::function<double(const service_instance&)>& weight() const noexcept { return weight_; }

private:
    explicit pick_strategy(kind k) : kind_(k) {}
    kind kind_;
    std::function<double(const service_instance&)> weight_;
};

}  // namespace zkasio
