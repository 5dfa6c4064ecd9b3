#pragma once

#include <zkasio/bytes.hpp>
#include <zkasio/create_options.hpp>
#include <zkasio/types.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace zkasio {

/// A list of steps that a server applies all together or not at all, in order.
class transaction {
public:
    enum class kind { create, set, remove, check };
    struct step {
        kind what;
        std::string path;
        std::string data;
        std::int32_t version = any_version;
        create_options options;
    };

    transaction() {}

    /// Containers, times to live, parents on demand and protection are not possible inside a transaction.
    transaction& create(std::string path, bytes data = bytes(), create_options options = create_options()) {
        steps_.push_back({kind::create, std::move(path), std::move(data).take(), any_version, std::move(options)});
        return *this;
    }
    transaction& set(std::string path, bytes data, std::int32_t version = any_version) {
        steps_.push_back({kind::set, std::move(path), std::move(data).take(), version, {}});
        return *this;
    }
    transaction& remove(std::string path, std::int32_t version = any_version) {
        steps_.push_back({kind::remove, std::move(path), {}, version, {}});
        return *this;
    }
    /// The node has to exist, with this version of its data.
    transaction& check(std::string path, std::int32_t version = any_version) {
        steps_.push_back({kind::check, std::move(path), {}, version, {}});
        return *this;
    }

    transaction& append(transaction other) {
        for (step& s : other.steps_) steps_.push_back(std::move(s));
        return *this;
    }

    const std::vector<step>& steps() const noexcept { return steps_; }
    bool empty() const noexcept { return steps_.empty(); }

private:
    std::vector<step> steps_;
};

/// The result of one step of a transaction.
struct step_result {
    std::string path;                      ///< of the created node, for create
    std::optional<node_stat> new_stat;   ///< after a set
};

}  // namespace zkasio
