// SPDX-License-Identifier: Apache-2.0
#include "gateway/service/identity_service.h"

#include <algorithm>
#include <chrono>

#include "gateway/service/call_rules.h"

namespace rocegw::service {
namespace {

constexpr Duration kLongestWait = Seconds(30);
// The answer leaves so long before the caller's deadline.
constexpr Duration kBeforeDeadline = Milliseconds(200);
constexpr size_t kLongestReason = 256;

// Returns the requested wait, bounded by a maximum and the call's deadline.
Duration WaitOf(const grpc::CallbackServerContext& context,
                const google::protobuf::Duration& wait) {
  const int64_t seconds = std::clamp<int64_t>(wait.seconds(), 0, kLongestWait.ns / 1000000000);
  const Duration asked = Seconds(seconds) + Nanoseconds(std::clamp(wait.nanos(), 0, 999999999));
  const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(
      context.deadline() - std::chrono::system_clock::now());
  const Duration possible = Nanoseconds(left.count()) - kBeforeDeadline;
  return std::max(Duration{}, std::min({asked, possible, kLongestWait}));
}

// Returns the text as one line, whatever the sender put into it.
std::string OneLine(std::string text) {
  text.resize(std::min(text.size(), kLongestReason));
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == 0x7F; }, ' ');
  return text;
}

}  // namespace

grpc::ServerUnaryReactor* IdentityService::ListHeldAttaches(
    grpc::CallbackServerContext* context, const gateway::v1::ListHeldAttachesRequest* request,
    gateway::v1::ListHeldAttachesResponse* response) {
  if (grpc::Status wrong = CheckDeadline(*context); !wrong.ok()) return Refuse(context, wrong);
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  source_.ListHeld(request->after(), WaitOf(*context, request->wait()),
                   [reactor, response](const std::vector<session::HeldRow>& rows) {
                     for (const session::HeldRow& row : rows) {
                       gateway::v1::HeldAttach& attach = *response->add_attaches();
                       attach.set_id(row.id);
                       attach.set_pool(row.pool);
                       attach.set_socket(row.socket);
                       attach.set_pid(row.pid);
                       attach.set_uid(row.uid);
                       attach.set_gid(row.gid);
                       attach.set_start_time(row.start_time);
                       attach.set_cgroup(row.cgroup);
                       attach.set_comm(row.comm);
                     }
                     reactor->Finish(grpc::Status::OK);
                   });
  return reactor;
}

grpc::ServerUnaryReactor* IdentityService::AnswerAttach(
    grpc::CallbackServerContext* context, const gateway::v1::AnswerAttachRequest* request,
    gateway::v1::AnswerAttachResponse*) {
  if (grpc::Status wrong = CheckDeadline(*context); !wrong.ok()) return Refuse(context, wrong);
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  source_.AnswerHeld(request->id(), request->allowed(), OneLine(request->reason()),
                     {request->limits().qps(), request->limits().bytes_per_second()},
                     [reactor](bool known) {
                       reactor->Finish(known ? grpc::Status::OK
                                             : grpc::Status(grpc::StatusCode::NOT_FOUND,
                                                            "this attach is not held any more"));
                     });
  return reactor;
}

grpc::ServerUnaryReactor* IdentityService::ClearSocket(
    grpc::CallbackServerContext* context, const gateway::v1::ClearSocketRequest* request,
    gateway::v1::ClearSocketResponse* response) {
  if (grpc::Status wrong = CheckDeadline(*context); !wrong.ok()) return Refuse(context, wrong);
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  source_.ClearSocket(request->socket(), request->expect_program(),
                      [reactor, response](uint32_t remaining) {
                        response->set_remaining(remaining);
                        reactor->Finish(grpc::Status::OK);
                      });
  return reactor;
}

}  // namespace rocegw::service
