// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/exchange/request_exchange.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "gateway/base/unique_fd.h"
#include "gateway/loop/control_loop.h"

namespace rocegw::session {

RequestExchange::RequestExchange(RequestOwner& owner, MessageSink& sink,
                                 std::shared_ptr<ClientCallQueue> call_queue,
                                 std::shared_ptr<ReturnedCalls> returned_calls,
                                 std::shared_ptr<DescriptorReceiver> receiver)
    : owner_(owner),
      sink_(sink),
      call_queue_(std::move(call_queue)),
      returned_calls_(std::move(returned_calls)),
      receiver_(std::move(receiver)) {}

void RequestExchange::OnMessage(std::span<const uint8_t> bytes, int passing) {
  if (closed_) return;
  if (const char* const wrong = CheckForm(bytes)) return owner_.End(wrong);
  Request request{DecodeAs<rocegw_request>(bytes), bytes, passing};
  if (!greeted_ && request.header.type != ROCEGW_MSG_HELLO) {
    return owner_.End("first message was not a greeting");
  }
  if (greeted_ && request.header.type == ROCEGW_MSG_HELLO) return owner_.End("second greeting");
  pending_.Begin(request, ControlLoop::Now());
  owner_.Execute(request);
  if (request.passing >= 0 && !closed_) DropDescriptor(request.passing);
}

void RequestExchange::Send(std::span<uint8_t> reply, int fd) {
  auto* const header = reinterpret_cast<rocegw_reply*>(reply.data());
  header->length = static_cast<uint32_t>(reply.size());
  const bool awaited = pending_.awaited();
  if (!pending_.Complete(*header)) return;
  if (closed_) return end_waits_for_pending_.reset();
  owner_.BeforeReply();
  if (awaited) sink_.Send(reply, fd);
  owner_.AfterReply(pending_.began());
  if (on_ready) on_ready();
}

void RequestExchange::Done() { Reply(rocegw_object_reply{}); }

void RequestExchange::Error(int error) {
  if (pending_.owed() && !pending_.awaited() && !closed_)
    owner_.OnUnanswered(pending_.type(), pending_.subject(), error);
  rocegw_reply reply{};
  reply.error = error;
  Send({reinterpret_cast<uint8_t*>(&reply), sizeof reply}, -1);
}

void RequestExchange::Answer(int error) { error == 0 ? Done() : Error(error); }

void RequestExchange::Object(uint32_t handle, uint64_t events_reported, int fd) {
  rocegw_object_reply reply{};
  reply.handle = handle;
  reply.events_reported = static_cast<uint32_t>(events_reported);
  Reply(reply, fd);
}

void RequestExchange::Violation(const std::string& reason) {
  pending_.Drop();
  owner_.End(reason);
}

void RequestExchange::RunBlocking(std::function<void()> call, std::function<void()> done) {
  RunBlocking(blocking_, std::move(call), std::move(done));
}

void RequestExchange::RunBlocking(uint64_t& pending, std::function<void()> call,
                                  std::function<void()> done) {
  pending = returned_calls_->Expect([&pending, done = std::move(done)] {
    pending = 0;
    done();
  });
  call_queue_->Run([call = std::move(call), returns = returned_calls_, number = pending] {
    call();
    returns->Report(number);
  });
}

void RequestExchange::TakeDescriptor(Request& request, const WantedDescriptor& wanted,
                                     std::function<void(PassedDescriptor passed)> done) {
  const int passing = std::exchange(request.passing, -1);
  if (passing < 0) return done({.status = Status(EBADF, "a request without its descriptor")});
  TakeMessage(blocking_, passing, wanted, [this, done = std::move(done)](PassedDescriptor passed) {
    if (passed.received) return done(std::move(passed));
    // The message would be read and executed again.
    Error(passed.status.error());
    owner_.End("its descriptor could not be received: " + passed.status.text());
  });
}

void RequestExchange::DropDescriptor(int passing) {
  TakeMessage(dropping_, passing, {PassedKind::kNone}, [this](const PassedDescriptor& passed) {
    if (!passed.received)
      return owner_.End("its message could not be received: " + passed.status.text());
    if (on_ready) on_ready();
  });
}

void RequestExchange::TakeMessage(uint64_t& pending, int passing, const WantedDescriptor& wanted,
                                  std::function<void(PassedDescriptor passed)> done) {
  struct Taken {
    UniqueFd connection;
    PassedDescriptor passed;
    std::vector<UniqueFd> left;  // for the call queue only
  };
  auto taken = std::make_shared<Taken>();
  taken->connection.Reset(::fcntl(passing, F_DUPFD_CLOEXEC, 0));
  if (!taken->connection.valid())
    return done({.status = Status(EMFILE, "the daemon has no descriptor left to read from it")});
  const std::shared_ptr<DescriptorReceiver> receiver = receiver_;
  RunBlocking(
      pending,
      [taken, wanted, receiver] {
        taken->passed = receiver->Take(taken->connection.get(), wanted, taken->left);
        taken->connection.Reset();
      },
      [taken, done = std::move(done)] { done(std::move(taken->passed)); });
  call_queue_->Run([taken, receiver] { receiver->Finish(taken->left); });
}

void RequestExchange::Close() {
  closed_ = true;
  // The program decides when this call returns, so it is abandoned without a reply.
  if (const uint64_t out = std::exchange(blocking_, 0); out != 0) {
    returned_calls_->Abandon(out);
    pending_.Drop();
  }
  returned_calls_->Abandon(std::exchange(dropping_, 0));
}

void RequestExchange::HoldUntilSettled(const Join& join) {
  if (busy()) end_waits_for_pending_ = join;
}

}  // namespace rocegw::session
