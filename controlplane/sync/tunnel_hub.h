// SPDX-License-Identifier: Apache-2.0
// Questions for gateways on their way down the agents' tunnels, and answers on their way back.
// Knows who waits for what and until when; does not look into either. Owns a thread for the
// deadlines. Any thread may call.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "controlplane/sync/node_hub.h"
#include "rocegw/fleet/v1/node.pb.h"

namespace rocegw::sync {

// One agent's tunnel, towards the agent. Calls come under the hub's lock: they must not block and
// must not call the hub.
class TunnelStream {
 public:
  virtual ~TunnelStream() = default;
  virtual void Send(const fleet::v1::TunnelQuestion& question) = 0;
  virtual void Close(StreamEnd why) = 0;
};

// Code of gRPC. OK: the parts of the answer in order.
struct TunnelResult {
  int code = 0;
  std::string message;
  std::vector<fleet::v1::TunnelAnswer> parts;
};

class TunnelHub {
 public:
  using Clock = std::chrono::system_clock;
  using StreamId = uint64_t;
  using QuestionId = uint64_t;
  using Done = std::function<void(TunnelResult)>;
  using Part = std::function<void(const fleet::v1::TunnelAnswer&)>;
  // What an agent may put into one answer; more is a fault of its own.
  static constexpr size_t kMostParts = 256;

  TunnelHub();
  ~TunnelHub();
  TunnelHub(const TunnelHub&) = delete;
  TunnelHub& operator=(const TunnelHub&) = delete;

  // An older tunnel of the gateway is closed, its questions fail.
  StreamId Attach(const std::string& gateway, std::shared_ptr<TunnelStream> stream);
  void OnAnswer(const std::string& gateway, StreamId id, const fleet::v1::TunnelAnswer& answer);
  void Detach(const std::string& gateway, StreamId id);
  // Whether its tunnel ends here.
  bool Has(const std::string& gateway);

  // Calls done once, on any thread, maybe before it returns; without a lock.
  void Ask(const std::string& gateway, fleet::v1::TunnelQuestion question,
           Clock::time_point deadline, Done done);

  // An answer of any length, part by part, the last one too; then done, with a result without
  // parts. The gateway may send `window` parts and as many more as are granted. Parts come one
  // after the other, on any thread, without a lock; one may still be under way when done is called.
  // The question's id is in every part, and returned; 0: there is no tunnel, and done was called.
  QuestionId AskInParts(const std::string& gateway, fleet::v1::TunnelQuestion question,
                        Clock::time_point deadline, uint32_t window, Part part, Done done);
  void Grant(QuestionId question, uint32_t parts);
  // Nobody waits any more: done is called with CANCELLED, unless it was called before.
  void Cancel(QuestionId question);

 private:
  struct Waiting {
    std::string gateway;
    Clock::time_point deadline;
    Done done;
    std::vector<fleet::v1::TunnelAnswer> parts;
    std::shared_ptr<Part> part;  // set: parts are handed on and not kept
  };
  struct Tunnel {
    StreamId id = 0;
    std::shared_ptr<TunnelStream> stream;
  };

  void Run();
  // The question's number; 0: there is no tunnel, and `waiting` is as it was.
  QuestionId Send(fleet::v1::TunnelQuestion& question, Waiting& waiting);
  // Tells the agent that nobody waits; the question is taken out by the caller.
  void SendCancel(QuestionId question, const std::string& gateway);
  // Takes out the questions of a gateway whose tunnel is gone.
  std::vector<Done> TakeOf(const std::string& gateway);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::map<std::string, Tunnel> tunnels_;
  std::map<uint64_t, Waiting> waiting_;  // by question
  StreamId last_stream_ = 0;
  uint64_t last_question_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace rocegw::sync
