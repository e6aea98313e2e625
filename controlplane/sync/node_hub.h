// SPDX-License-Identifier: Apache-2.0
// All agents whose streams end at this controller: sends each what its gateway should run as soon
// as it changes, takes their reports, and keeps the status of gateways in the store up to date.
// Owns a thread. Any thread may call; follower and status writer outlive it. Lock order: follower,
// hub.
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

// Why the controller ends a stream.
enum class StreamEnd {
  kSuperseded,  // a second stream of the same node
  kRevoked,     // its certificate does not hold any more
  kProtocol,    // a report that answers nothing, a second hello
  kClosing,     // the controller ends
};

// One agent's stream, towards the agent. Calls come under the hub's lock: they must not block and
// must not call the hub.
class NodeStream {
 public:
  virtual ~NodeStream() = default;
  virtual void Send(const fleet::v1::SyncResponse& message) = 0;
  virtual void Close(StreamEnd why) = 0;
};

// How far the fleet is with what was asked for.
struct FleetProgress {
  store::Revision revision = 0;  // all changes up to here are on their way
  uint32_t gateways = 0;
  uint32_t connected = 0;  // here
  uint32_t in_sync = 0;
  uint32_t unadopted = 0;
  uint32_t rejecting = 0;
};

struct NodeHubOptions {
  std::string controller;  // id of this one; see presence.h
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
  // The gateway's object exists. An older stream of the gateway is closed. `certificate_expires`:
  // seconds of the epoch; 0: not known.
  StreamId Attach(const fleet::v1::Hello& hello, std::shared_ptr<NodeStream> stream,
                  int64_t certificate_expires);
  void OnReport(const std::string& gateway, StreamId id, const types::v1::PushReport& report);
  void OnHeartbeat(const std::string& gateway, StreamId id, const fleet::v1::Heartbeat& heartbeat);
  // The stream has ended. Of an older stream: nothing.
  void Detach(const std::string& gateway, StreamId id);

  void CloseAll(StreamEnd why);
  // All that are unadopted ("gateways/-") or one. Returns how many.
  uint32_t Adopt(const std::string& gateway);

  // So many addresses that gateways named were refused here, each once for as long as it is named.
  uint64_t refused_addresses(controllers::AddressRefusal why) const {
    return refused_addresses_[static_cast<size_t>(why)].load();
  }

  // What the gateways that are connected here told of their pools.
  const UsageBook& usage() const { return usage_; }

  // Once all changes up to `revision` have been handed to those they touch.
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
    // What its gateway said last, and what of it is not believed.
    google::protobuf::RepeatedPtrField<std::string> named_addresses;
    std::vector<controllers::RefusedAddress> refused_addresses;
    PushPace::Clock::time_point warn_at;
    std::string written;   // what the status writer has
    bool in_line = false;  // in line_
  };

  void Run();
  void OnChange(const Fleet& fleet, const FleetChange& change);
  void WantPush(const std::string& gateway);
  // Sends what there is to be sent, or puts the node in line. paid: it comes from there.
  void Push(const Fleet& fleet, const std::string& gateway, bool paid);
  void Judge(const Fleet& fleet, const std::string& gateway, Node& node);
  // Addresses have come or gone elsewhere: what is believed of the nodes here may be different.
  void JudgeAnew(const Fleet& fleet, const FleetChange& change);
  void KeepConnected(const Fleet& fleet, const std::string& name);
  // What the store should show; only when it differs from what it shows.
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
  std::set<std::string> ready_;   // nodes that may have something to be sent
  std::deque<std::string> line_;  // nodes whose changes gather until the pace allows a push
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
