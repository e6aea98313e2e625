// SPDX-License-Identifier: Apache-2.0
// Gateway inside one process (docs/user/in_process.md): the daemon's data path with its control
// loop and its worker on their own threads, which take no signals and share no descriptors with the
// program. Program and engine communicate as usual, through attach connections and their shared
// memory. A forked child does not have these threads, so an engine is unusable there.
//
// Calls: one at a time, from any thread of the program. Errors state what is wrong and the remedy.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "gateway/base/status.h"
#include "gateway/base/time.h"
#include "gateway/base/unique_fd.h"
#include "gateway/datapath/config.h"
#include "gateway/datapath/data_path.h"
#include "gateway/session/state/log_limiter.h"

namespace rocegw::inprocess {

class ProgramThread;

class Engine {
 public:
  // `keep_stderr`: `log` writes there. The engine's threads call `log`. With config.guest_rounds
  // descriptors are shared with the program, because its threads use them.
  Engine(datapath::Config config, session::Log log, bool keep_stderr);
  // Stops the engine if it runs.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Starts everything, or nothing.
  Status Start();
  // Returns a connection to the engine. EOWNERDEAD in a forked child, EPIPE if the program has
  // closed our descriptor.
  StatusOr<UniqueFd> Attach();
  // Ends sessions, notifies peers, ends threads. Returns false if time ran out: threads may still
  // run, and this object must not be destroyed.
  bool Stop(Duration within);

  // Runs a round of the worker on the calling thread, with config.guest_rounds; any thread, any
  // time.
  void Progress();

  // Settings of a program for its gateway.
  struct Wishes {
    // The only address to use; nothing: every address of the interface with the default route.
    std::optional<wire::Gid> address;
    bool run_in_poll = false;  // Progress may be called
    bool placement = false;    // FLUSH and ATOMIC WRITE
  };
  // Returns the configuration for these settings: one worker, direct memory access.
  static datapath::Config ConfigFor(const Wishes& wishes);

 private:
  enum class Order : char { kAttach = 'a', kStop = 's' };
  enum class Stage { kStarting, kRunning, kFailed, kStopped };

  void Run(int orders);
  void Serve(int orders);
  void TurnGuestsAway();
  void SetStage(Stage stage, Status status = OkStatus());
  bool Send(Order order, int descriptor) const;
  static bool Receive(int orders, Order& order, UniqueFd& descriptor);

  const datapath::Config config_;
  const session::Log log_;
  const bool keep_stderr_;
  std::shared_ptr<ProgramThread> program_thread_;  // nullptr: the program uses no GPU
  pid_t process_ = 0;
  // The program's end of the order socket. A program that closes all descriptors closes it too and
  // may reuse its number: compared before use.
  UniqueFd orders_;
  dev_t orders_device_ = 0;
  ino_t orders_inode_ = 0;
  std::thread thread_;
  // Data path for the program's threads; nullptr before start and after stop. The stop waits for
  // threads inside.
  std::atomic<datapath::DataPath*> open_to_guests_{nullptr};
  std::atomic<uint32_t> guests_{0};

  std::mutex mutex_;  // guards the fields below
  std::condition_variable changed_;
  Stage stage_ = Stage::kStarting;
  Status status_;
};

}  // namespace rocegw::inprocess
