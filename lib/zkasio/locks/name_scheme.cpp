#include <zkasio/locks/name_scheme.hpp>

#include <zkasio/error.hpp>
#include <zkasio/locks/detail/queue/queue_names.hpp>
#include <zkasio/path.hpp>

namespace zkasio {

name_scheme::name_scheme(std::string prefix, bool dashes, std::string separator, std::string mutex, std::string write,
                         std::string read, bool directory_stays)
    : prefix_(std::move(prefix)),
      dashes_(dashes),
      separator_(std::move(separator)),
      mutex_(std::move(mutex)),
      write_(std::move(write)),
      read_(std::move(read)),
      directory_stays_(directory_stays) {}

name_scheme name_scheme::curator() { return {"_c_", true, "-", "lock-", "__WRIT__", "__READ__"}; }
name_scheme name_scheme::curator_latch() { return {"_c_", true, "-", "latch-", "latch-", ""}; }
name_scheme name_scheme::kazoo() { return {"", false, "", "__lock__", "__lock__", "__rlock__", true}; }

name_scheme name_scheme::custom(std::string prefix, std::string exclusive, std::string shared) {
    const auto refuse = [&](std::string_view why) {
        throw error(errc::invalid_argument, "name_scheme", exclusive, why);
    };
    if (exclusive.empty()) refuse("the marker is empty");
    for (const std::string& part : {prefix, exclusive, shared}) {
        if (part.find('/') != std::string::npos) refuse("'/' is no part of a node's name");
        if (const std::string problem = path_problem("/x" + part + "x"); !problem.empty()) refuse(problem);
    }
    // Behind 2^31 + 10^9 nodes a number begins with '-', as "-1000000000", and another one may follow "<marker>-".
    const auto is_end = [](const std::string& a, const std::string& b) { return a.ends_with(b) || b.ends_with(a); };
    if (!shared.empty() && (is_end(exclusive, shared) || is_end(exclusive + '-', shared) ||
                            is_end(exclusive, shared + '-')))
        refuse("one marker is the end of the other: they cannot be told apart");
    return {std::move(prefix), true, "", exclusive, exclusive, std::move(shared)};
}

name_scheme name_scheme::plain(std::string exclusive, std::string shared) {
    name_scheme names = custom({}, std::move(exclusive), std::move(shared));
    names.has_id_ = false;
    return names;
}

name_scheme name_scheme::allow_foreign_children() const {
    name_scheme names = *this;
    names.foreign_children_allowed_ = true;
    return names;
}

std::string name_scheme::first_of(const std::vector<std::string>& children, const std::string& directory) const {
    const lock_detail::queue_names names(*this, mutex_, {}, directory);
    const std::string* first = nullptr;
    std::int32_t lowest = 0;
    for (const std::string& child : children) {
        const auto contender = names.contender(child);
        if (!contender || (first && !lock_detail::before(contender->sequence, lowest))) continue;
        first = &child;
        lowest = contender->sequence;
    }
    return first ? *first : std::string();
}

}  // namespace zkasio
