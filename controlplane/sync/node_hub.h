// SPDX-License-Identifier: Apache-2.0
// Hub of all agents connected to this controller: sends each the configuration of its gateway as
// soon as it changes, takes their reports, and updates the gateways' statuses in the store. Owns a
// thread. Any thread may call; follower and status writer outlive it. Lock order: follower, hub.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "controlplane/controllers/address_claims.h"
#include "controlplane/sync/fleet_follower.h"
#include "controlplane/sync/node_session.h"
#include "controlplane/sync/push_pace.h"
#include "controlplane/sync/status_writer.h"
#include "controlplane/sync/usage_book.h"
#include "rocegw/fleet/v1/node.pb.h"

namespace rocegw::sync {

// Reason why the controller ends a stream.
enum class StreamEnd {
  kSuperseded,  // the same node opened a second stream
  kRevoked,     // its certificate became invalid
  kProtocol,    // a report without a push, or a second hello
  kClosing,     // the controller stops
};

// Stream to one agent. Called under the hub's lock: functions must not block or call the hub.
class NodeStream {
 public:
  virtual ~NodeStream() = default;
  virtual void Send(const fleet::v1::SyncResponse& message) = 0;
  virtual void Close(StreamEnd why) = 0;
};

// Progress of the fleet towards the desired configuration.
struct FleetProgress {
  store::Revision revision = 0;  // all changes up to here were sent
  uint32_t gateways = 0;
  uint32_t connected = 0;  // to this controller
  uint32_t in_sync = 0;
  uint32_t unadopted = 0;
  uint32_t rejecting = 0;
};

struct NodeHubOptions {
  std::string controller;  // id of this controller; see presence.h
  PushPace::Options pace;
};

class NodeHub {
 public:
  NodeHub(FleetFollower& follower, StatusWriter& statuses, std::string store_uuid,
          const NodeHubOptions& options = {});
  ~NodeHub();
  NodeHub(const NodeHub&) = delete;
  NodeHub& operator=(const NodeHub&) = delete;

  using StreamId = uint64_t;
  // Adds a stream of an existing gateway; closes an older stream of it. `certificate_expires`:
  // seconds since 1970; 0: unknown.
  StreamId Attach(const fleet::v1::Hello& hello, std::shared_ptr<NodeStream> stream,
                  int64_t certificate_expires);
  void OnReport(const std::string& gateway, StreamId id, const types::v1::PushReport& report);
  void OnHeartbeat(const std::string& gateway, StreamId id, const fleet::v1::Heartbeat& heartbeat);
  // Removes an ended stream; ignores older ones.
  void Detach(const std::string& gateway, StreamId id);

  void CloseAll(StreamEnd why);
  // Makes all unadopted gateways ("gateways/-") or one follow this store. Returns their number.
  uint32_t Adopt(const std::string& gateway);

  // Returns the number of refused addresses, each counted once while it is reported.
  uint64_t refused_addresses(controllers::AddressRefusal why) const {
    return refused_addresses_[static_cast<size_t>(why)].load();
  }

  // Usage of pools on the gateways connected here.
  const UsageBook& usage() const { return usage_; }

  // Calls once all changes up to `revision` were sent to the affected nodes.
  void WhenSent(store::Revision revision, std::function<void(FleetProgress)> call);

 private:
  struct Node {
    Node(StreamId stream_id, std::shared_ptr<NodeStream> s, NodeSession first)
        : id(stream_id), stream(std::move(s)), session(std::move(first)) {}
    StreamId id;
    std::shared_ptr<NodeStream> stream;
    NodeSession session;
    types::v1::GatewayState state;
    bool gateway_reachable = true;
    // Addresses that its gateway reported last, and those that were refused.
    google::protobuf::RepeatedPtrField<std::string> named_addresses;
    std::vector<controllers::RefusedAddress> refused_addresses;
    PushPace::Clock::time_point warn_at;
    std::string written;   // latest state at the status writer
    bool in_line = false;  // in line_
  };

  void Run();
  void OnChange(const Fleet& fleet, const FleetChange& change);
  void WantPush(const std::string& gateway);
  // Sends what is due, or queues the node. `paid`: it comes from the queue.
  void Push(const Fleet& fleet, const std::string& gateway, bool paid);
  void Judge(const Fleet& fleet, const std::string& gateway, Node& node);
  // Checks the claims of this controller's nodes again, since addresses have changed elsewhere.
  void JudgeAnew(const Fleet& fleet, const FleetChange& change);
  void KeepConnected(const Fleet& fleet, const std::string& name);
  // Updates the state in the store if it differs.
  void WriteState(const std::string& gateway, Node& node);
  Node* Find(const std::string& gateway, StreamId id);
  FleetProgress Progress() const;

  FleetFollower& follower_;
  StatusWriter& statuses_;
  const std::string store_uuid_;
  const std::string controller_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::map<std::string, Node> nodes_;
  UsageBook usage_;
  std::array<std::atomic<uint64_t>, controllers::kAddressRefusals> refused_addresses_{};
  std::set<std::string> ready_;   // nodes that may have something to send
  std::deque<std::string> line_;  // nodes that wait for the push rate; their changes accumulate
  PushPace pace_;
  std::multimap<store::Revision, std::function<void(FleetProgress)>> waiting_;
  store::Revision sent_ = 0;  // changes up to here are in the sessions
  uint32_t gateways_ = 0;
  StreamId last_id_ = 0;
  bool stopping_ = false;
  FleetFollower::ListenerId listener_ = 0;
  std::thread thread_;
};

}  // namespace rocegw::sync
