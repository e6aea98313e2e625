// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/storage_io/rdma_target.h"

#include <arpa/inet.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "tests/interop/storage_io/messages.h"
#include "tests/interop/storage_io/rdma_link.h"
#include "tests/interop/storage_io/volume.h"

namespace rocegw::storage_io {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kRetryInterval = std::chrono::milliseconds(100);
constexpr int kPollsBetweenEvents = 256;
constexpr int kCompletionsAtOnce = 32;

// What a completion is of, in the upper half of its wr_id; the lower half is the slot.
enum class Work : uint32_t { kCommand, kFetch, kResponse };
uint64_t WorkId(Work work, uint32_t slot) {
  return uint64_t{static_cast<uint32_t>(work)} << 32 | slot;
}

class TargetConnection {
 public:
  TargetConnection(rdma_cm_id* id, const Options& options, Volume& volume)
      : options_(options),
        volume_(volume),
        commands_(options.depth),
        responses_(options.depth),
        data_(size_t{options.depth} * options.block_bytes),
        queue_(id, 2 * options.depth, options.depth) {
    commands_region_ = queue_.Register(commands_.data(), commands_.size() * sizeof(Command));
    responses_region_ = queue_.Register(responses_.data(), responses_.size() * sizeof(Response));
    data_region_ = queue_.Register(data_.data(), data_.size());
    for (uint32_t slot = 0; slot < options.depth; ++slot) Receive(slot);
  }

  rdma_cm_id* id() const { return queue_.id(); }
  bool failed() const { return queue_.failed() || ended_; }

  void Poll() {
    ibv_wc completions[kCompletionsAtOnce];
    const int count = queue_.Poll(completions, kCompletionsAtOnce);
    for (int i = 0; i < count; ++i) {
      if (completions[i].status != IBV_WC_SUCCESS) {
        ended_ = true;
        return;
      }
      Handle(static_cast<Work>(completions[i].wr_id >> 32),
             static_cast<uint32_t>(completions[i].wr_id));
    }
  }

 private:
  void Receive(uint32_t slot) {
    queue_.PostReceive(WorkId(Work::kCommand, slot), &commands_[slot], sizeof(Command),
                       commands_region_);
  }
  uint8_t* DataOf(uint32_t slot) { return &data_[size_t{slot} * options_.block_bytes]; }

  void Handle(Work work, uint32_t slot) {
    switch (work) {
      case Work::kCommand:
        return Begin(slot);
      case Work::kFetch:
        return Respond(slot, volume_.Write(commands_[slot].block, DataOf(slot)));
      case Work::kResponse:
        return;
    }
  }

  void Begin(uint32_t slot) {
    const Command& command = commands_[slot];
    if (!volume_.Has(command.block, command.bytes)) return Respond(slot, /*ok=*/false);
    const bool read = command.operation == Operation::kRead;
    OneSge data(read ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, WorkId(Work::kFetch, slot),
                DataOf(slot), command.bytes, data_region_);
    data.wr.wr.rdma = {command.address, command.rkey};
    if (!read) {
      data.wr.send_flags = IBV_SEND_SIGNALED;
      return queue_.Post(data.wr);
    }
    volume_.Read(command.block, DataOf(slot));
    Respond(slot, /*ok=*/true, &data.wr);
  }

  // Posts `before`, if there is one, and the response in one list. The receive of the slot is
  // posted first: the initiator may use the slot as soon as it has the response.
  void Respond(uint32_t slot, bool ok, ibv_send_wr* before = nullptr) {
    Response& response = responses_[slot];
    response = {commands_[slot].slot, ok ? 0U : 1U, 0};
    Receive(slot);
    OneSge send(IBV_WR_SEND, WorkId(Work::kResponse, slot), &response, sizeof response,
                responses_region_);
    send.wr.send_flags = IBV_SEND_SIGNALED;
    if (before != nullptr) before->next = &send.wr;
    queue_.Post(before != nullptr ? *before : send.wr);
  }

  const Options& options_;
  Volume& volume_;
  std::vector<Command> commands_;
  std::vector<Response> responses_;
  std::vector<uint8_t> data_;
  Queue queue_;
  ibv_mr* commands_region_;
  ibv_mr* responses_region_;
  ibv_mr* data_region_;
  bool ended_ = false;
};

// A device opened from a list that is as old as the program, and its asynchronous events.
class DeviceWatch {
 public:
  DeviceWatch() : list_(ibv_get_device_list(nullptr)) {
    if (list_ == nullptr || list_[0] == nullptr) Die("ibv_get_device_list");
    Open();
  }
  ~DeviceWatch() {
    if (context_ != nullptr) ibv_close_device(context_);
    ibv_free_device_list(list_);
  }
  DeviceWatch(const DeviceWatch&) = delete;
  DeviceWatch& operator=(const DeviceWatch&) = delete;

  void Poll() {
    if (context_ == nullptr) return Open();
    ibv_async_event event;
    if (ibv_get_async_event(context_, &event) != 0) return;
    ibv_ack_async_event(&event);
    if (event.event_type != IBV_EVENT_DEVICE_FATAL) return;
    std::printf("device ended\n");
    ibv_close_device(context_);
    context_ = nullptr;
  }

 private:
  void Open() {
    context_ = ibv_open_device(list_[0]);
    if (context_ == nullptr) return;
    if (::fcntl(context_->async_fd, F_SETFL, O_NONBLOCK) != 0) Die("fcntl");
    std::printf("device opened\n");
  }

  ibv_device** list_;
  ibv_context* context_ = nullptr;
};

class RdmaTarget {
 public:
  explicit RdmaTarget(const Options& options)
      : options_(options), volume_(options.block_bytes, options.verify) {}
  ~RdmaTarget() { Close(); }
  RdmaTarget(const RdmaTarget&) = delete;
  RdmaTarget& operator=(const RdmaTarget&) = delete;

  void Turn() {
    for (TargetConnection& connection : connections_) connection.Poll();
    if (++polls_ < kPollsBetweenEvents) return;
    polls_ = 0;
    while (const auto event = channel_.Poll()) Handle(*event);
    const auto failed = std::find_if(connections_.begin(), connections_.end(),
                                     [](const auto& connection) { return connection.failed(); });
    if (failed != connections_.end()) Close(failed->id());
    if (Clock::now() < next_try_) return;
    next_try_ = Clock::now() + kRetryInterval;
    watch_.Poll();
    if (!removals_.empty() && listener_ != nullptr) CloseForRemoval();
    if (listener_ == nullptr) Listen();
  }

 private:
  void Handle(const CmEvent& event) {
    switch (event.type) {
      case RDMA_CM_EVENT_CONNECT_REQUEST:
        return Accept(event.id);
      case RDMA_CM_EVENT_DISCONNECTED:
        return Close(event.id);
      case RDMA_CM_EVENT_DEVICE_REMOVAL:
        ++removals_[event.id];
        return;
      default:
        return;
    }
  }

  void Accept(rdma_cm_id* id) {
    TargetConnection& connection = connections_.emplace_back(id, options_, volume_);
    rdma_conn_param parameters = ConnectionParameters();
    if (connection.failed() || rdma_accept(id, &parameters) != 0) Close(id);
  }

  void Close(rdma_cm_id* id) {
    const auto at = std::find_if(connections_.begin(), connections_.end(),
                                 [id](const auto& connection) { return connection.id() == id; });
    if (at == connections_.end()) return;
    connections_.erase(at);
    rdma_destroy_id(id);
  }

  // The events of all ids have had time to come: one for each.
  void CloseForRemoval() {
    int events = 0;
    for (const auto& [id, count] : removals_) events += count;
    size_t silent = removals_.contains(listener_) ? 0 : 1;
    for (const TargetConnection& connection : connections_)
      silent += removals_.contains(connection.id()) ? 0 : 1;
    std::printf("removed: %d events of %zu ids, none of %zu\n", events, removals_.size(), silent);
    removals_.clear();
    Close();
  }

  void Close() {
    while (!connections_.empty()) Close(connections_.front().id());
    if (listener_ != nullptr) rdma_destroy_id(listener_);
    listener_ = nullptr;
  }

  void Listen() {
    rdma_cm_id* id = nullptr;
    if (rdma_create_id(channel_.get(), &id, nullptr, RDMA_PS_TCP) != 0) return;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(options_.port);
    if (::inet_pton(AF_INET, options_.address.c_str(), &address.sin_addr) != 1) Die("address");
    if (rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&address)) != 0 ||
        rdma_listen(id, 16) != 0) {
      rdma_destroy_id(id);
      return;
    }
    listener_ = id;
    std::printf("listening\n");
  }

  const Options options_;
  Volume volume_;
  EventChannel channel_;
  DeviceWatch watch_;
  rdma_cm_id* listener_ = nullptr;
  std::list<TargetConnection> connections_;
  std::map<rdma_cm_id*, int> removals_;  // events by id, since the last removal was handled
  int polls_ = kPollsBetweenEvents;
  Clock::time_point next_try_{};
};

}  // namespace

int RunRdmaTarget(const Options& options, const volatile std::sig_atomic_t* stop) {
  RdmaTarget target(options);
  while (*stop == 0) target.Turn();
  return 0;
}

}  // namespace rocegw::storage_io
