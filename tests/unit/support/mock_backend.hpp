#pragma once

#include "support/trompeloeil.hpp"

#include <zkasio/detail/seam/backend.hpp>

namespace zkasio::test {

/// Where a test is about what crosses the seam, call by call; elsewhere fake_server is easier to read.
class mock_backend : public trompeloeil::mock_interface<detail::backend> {
public:
    IMPLEMENT_MOCK1(open);
    IMPLEMENT_CONST_MOCK0(has_socket);
    IMPLEMENT_MOCK0(next_interest);
    IMPLEMENT_MOCK2(process);
    IMPLEMENT_MOCK2(submit);
    IMPLEMENT_MOCK0(begin_batch);
    IMPLEMENT_MOCK0(end_batch);
    IMPLEMENT_MOCK0(abort_connection);
    IMPLEMENT_MOCK1(set_servers);
    IMPLEMENT_MOCK2(forget_watch);
    IMPLEMENT_CONST_MOCK0(session_id);
    IMPLEMENT_CONST_MOCK0(session_password);
    IMPLEMENT_CONST_MOCK0(session_timeout);
    IMPLEMENT_CONST_MOCK0(last_failure);
    IMPLEMENT_CONST_MOCK0(current_server);
    IMPLEMENT_MOCK0(send_goodbye);
    IMPLEMENT_MOCK0(answer_to_goodbye);
    IMPLEMENT_MOCK0(close);
};

}  // namespace zkasio::test
