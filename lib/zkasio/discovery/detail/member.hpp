#pragma once

#include <zkasio/discovery/detail/failure_record.hpp>
#include <zkasio/discovery/service_instance.hpp>
#include <zkasio/recipe/stable_hash.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace zkasio::discovery_detail {

/// The counts of an instance, for as long as its node is not re-created. Writing to the node keeps the counts.
struct incarnation {
    incarnation(std::uint64_t n, ejection_policy p) noexcept : serial(n), policy(p) {}
    void report_failure() noexcept;

    const std::uint64_t serial;  ///< above 0; unique within a provider
    const ejection_policy policy;
    std::atomic<std::uint32_t> outstanding{0};
    std::atomic<std::uint64_t> failures{0};  ///< a failure_record
};

/// One state of an instance. Only the counts change.
struct member {
    member(std::string n, service_instance i, double w, std::shared_ptr<incarnation> c);
    const std::string node;  ///< name of the node
    const service_instance instance;
    const double weight;
    const std::uint64_t hash;  ///< of `node`
    const std::shared_ptr<incarnation> counted;
};
using member_ptr = std::shared_ptr<const member>;

using detail::hash_of;  // the same in every process, as pick_for() requires
using detail::mixed;

}  // namespace zkasio::discovery_detail
