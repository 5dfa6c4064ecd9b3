#pragma once

#include "support/texts.hpp"

#include <zkasio/detail/base/sha1.hpp>
#include <zkasio/sasl_mechanism.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zkasio::test {

/// Another mechanism, and what passes between it and the servers: tokens and challenges.
class recorded_tokens final : public sasl_mechanism {
public:
    explicit recorded_tokens(std::shared_ptr<const sasl_mechanism> of) : of_(std::move(of)) {}

    asio::any_io_executor executor() const override { return of_->executor(); }
    std::unique_ptr<sasl_conversation> begin(const sasl_server& with) const override {
        return std::make_unique<conversation>(*this, of_->begin(with));
    }

    std::vector<std::string> all() const {
        const std::lock_guard lock(mutex_);
        return all_;
    }

    /// The first piece of a token or challenge, raw, in base64 or as hexadecimal digits, that is in the text; or "".
    std::string found_in(std::string_view text) const {
        for (const std::string& token : all()) {
            // Of base64, the ends depend on what is around them: what is in between is looked for, from each offset.
            for (std::size_t skip = 0; skip < 3 && skip < token.size(); ++skip)
                if (std::string piece = piece_in(text, in_base64(token.substr(skip)), 16); !piece.empty()) return piece;
            for (const std::string& form : {token, in_hex(token)})
                if (std::string piece = piece_in(text, form, 16); !piece.empty()) return piece;
        }
        return {};
    }

private:
    class conversation final : public sasl_conversation {
    public:
        conversation(const recorded_tokens& by, std::unique_ptr<sasl_conversation> of) : by_(by), of_(std::move(of)) {}
        asio::awaitable<sasl_step> step(std::string challenge) override {
            by_.record(challenge);
            sasl_step next = co_await of_->step(std::move(challenge));
            if (next.token()) by_.record(*next.token());
            co_return next;
        }

    private:
        const recorded_tokens& by_;
        std::unique_ptr<sasl_conversation> of_;
    };

    void record(const std::string& token) const {
        const std::lock_guard lock(mutex_);
        if (!token.empty()) all_.push_back(token);
    }
    static std::string piece_in(std::string_view text, const std::string& form, std::size_t size) {
        for (std::size_t at = 0; at + size <= form.size(); ++at)
            if (has(text, form.substr(at, size))) return form.substr(at, size);
        return {};
    }
    static std::string in_hex(const std::string& bytes) {
        std::string all;
        for (const char c : bytes) {
            char two[3];
            std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(c));
            all += two;
        }
        return all;
    }
    static std::string in_base64(const std::string& bytes) {
        const std::vector<std::uint8_t> octets(bytes.begin(), bytes.end());
        std::string all = detail::base64(octets);
        return all.substr(0, all.find('='));
    }

    std::shared_ptr<const sasl_mechanism> of_;
    mutable std::mutex mutex_;
    mutable std::vector<std::string> all_;
};

}  // namespace zkasio::test
