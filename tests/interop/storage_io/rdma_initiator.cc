// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/storage_io/rdma_initiator.h"

#include <arpa/inet.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <vector>

#include "tests/interop/storage_io/load.h"
#include "tests/interop/storage_io/rdma_link.h"

namespace rocegw::storage_io {
namespace {

constexpr uint32_t kTold = 100;  // answers of a connection until they are told
// A peer that was cut off between its acknowledgement and its answer is noticed by nothing else, as
// NVMe's keep-alive does it.
constexpr auto kKeepAlive = std::chrono::seconds(3);
constexpr int kResolveMs = 2000;
constexpr int kRetryMs = 100;
constexpr int kPollsBetweenEvents = 256;
constexpr int kCompletionsAtOnce = 32;
constexpr uint64_t kIsCommand = uint64_t{1} << 32;  // in wr_id; else a response

class Initiator {
 public:
  Initiator(const Options& options, const volatile std::sig_atomic_t* stop)
      : options_(options), stop_(stop), load_(options) {}
  ~Initiator() { Close(); }
  Initiator(const Initiator&) = delete;
  Initiator& operator=(const Initiator&) = delete;

  int Run() {
    while (!Over()) {
      if (!Connect()) {
        Close();
        channel_.Wait(kRetryMs);
        continue;
      }
      std::printf("connected after %llu requests\n", static_cast<unsigned long long>(load_.done()));
      Serve();
      Close();
    }
    return load_.Report() ? 0 : 1;
  }

 private:
  bool Over() const { return *stop_ != 0 || load_.over(); }

  // Waits for the event; false if another one comes.
  bool Expect(rdma_cm_event_type type) {
    while (!Over()) {
      const auto event = channel_.Poll();
      if (!event) {
        channel_.Wait(kRetryMs);
        continue;
      }
      if (event->id != id_) continue;
      if (event->type == type) return true;
      std::printf("not connected: %s\n", rdma_event_str(event->type));
      return false;
    }
    return false;
  }

  bool Connect() {
    if (rdma_create_id(channel_.get(), &id_, nullptr, RDMA_PS_TCP) != 0) return false;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(options_.port);
    if (::inet_pton(AF_INET, options_.address.c_str(), &address.sin_addr) != 1) Die("address");
    if (rdma_resolve_addr(id_, nullptr, reinterpret_cast<sockaddr*>(&address), kResolveMs) != 0 ||
        !Expect(RDMA_CM_EVENT_ADDR_RESOLVED) || rdma_resolve_route(id_, kResolveMs) != 0 ||
        !Expect(RDMA_CM_EVENT_ROUTE_RESOLVED)) {
      return false;
    }
    commands_.resize(load_.depth());
    responses_.resize(load_.depth());
    queue_ = std::make_unique<Queue>(id_, 2 * load_.depth(), load_.depth());
    commands_region_ = queue_->Register(commands_.data(), commands_.size() * sizeof(Command));
    responses_region_ = queue_->Register(responses_.data(), responses_.size() * sizeof(Response));
    data_region_ = queue_->Register(load_.memory().data(), load_.memory().size());
    for (uint32_t i = 0; i < load_.depth(); ++i) Receive(i);
    rdma_conn_param parameters = ConnectionParameters();
    return !queue_->failed() && rdma_connect(id_, &parameters) == 0 &&
           Expect(RDMA_CM_EVENT_ESTABLISHED);
  }

  void Close() {
    queue_.reset();
    if (id_ != nullptr) rdma_destroy_id(id_);
    id_ = nullptr;
  }

  void Receive(uint32_t index) {
    queue_->PostReceive(index, &responses_[index], sizeof(Response), responses_region_);
  }

  void Begin(uint32_t slot) {
    Command& command = commands_[slot];
    command = load_.Begin(slot);
    command.address = reinterpret_cast<uint64_t>(load_.BlockOf(slot));
    command.rkey = data_region_->rkey;
    OneSge send(IBV_WR_SEND, kIsCommand | slot, &command, sizeof command, commands_region_);
    send.wr.send_flags = IBV_SEND_SIGNALED;
    queue_->Post(send.wr);
    ++outstanding_;
  }

  // Returns when the time is over or the connection has ended.
  void Serve() {
    outstanding_ = 0;
    until_told_ = kTold;
    answered_ = Load::Clock::now();
    for (uint32_t slot = 0; slot < load_.depth(); ++slot) Begin(slot);
    bool connected = true;
    for (int polls = 0; connected && !queue_->failed() && !Finished(); ++polls) {
      connected = PollCompletions();
      if (polls % kPollsBetweenEvents == 0) connected = connected && PollEvents();
    }
    for (; outstanding_ > 0; --outstanding_) load_.Abandon();
  }

  // No request is begun when the time is over, so all are answered soon.
  bool Finished() const { return *stop_ != 0 || (outstanding_ == 0 && load_.over()); }

  bool PollCompletions() {
    ibv_wc completions[kCompletionsAtOnce];
    const int count = queue_->Poll(completions, kCompletionsAtOnce);
    for (int i = 0; i < count; ++i) {
      if (completions[i].status != IBV_WC_SUCCESS) {
        std::printf("lost: %s\n", ibv_wc_status_str(completions[i].status));
        return false;
      }
      if ((completions[i].wr_id & kIsCommand) == 0)
        End(static_cast<uint32_t>(completions[i].wr_id));
    }
    return true;
  }

  void End(uint32_t index) {
    const Response response = responses_[index];
    Receive(index);
    load_.End(response.slot, response.failed != 0);
    --outstanding_;
    answered_ = Load::Clock::now();
    if (--until_told_ == 0) {
      std::printf("answered: %u requests of this connection\n", kTold);
    }
    if (!load_.over()) Begin(response.slot);
  }

  bool PollEvents() {
    const auto event = channel_.Poll();
    if (!event) {
      const bool silent = Load::Clock::now() - answered_ > kKeepAlive;
      if (silent) std::printf("lost: no answer\n");
      return !silent;
    }
    std::printf("lost: %s\n", rdma_event_str(event->type));
    return false;
  }

  const Options options_;
  const volatile std::sig_atomic_t* const stop_;
  Load load_;
  EventChannel channel_;
  rdma_cm_id* id_ = nullptr;
  std::vector<Command> commands_;
  std::vector<Response> responses_;
  std::unique_ptr<Queue> queue_;
  ibv_mr* commands_region_ = nullptr;
  ibv_mr* responses_region_ = nullptr;
  ibv_mr* data_region_ = nullptr;
  uint32_t outstanding_ = 0;
  uint32_t until_told_ = 0;  // answers
  Load::Clock::time_point answered_;
};

}  // namespace

int RunRdmaInitiator(const Options& options, const volatile std::sig_atomic_t* stop) {
  return Initiator(options, stop).Run();
}

}  // namespace rocegw::storage_io
