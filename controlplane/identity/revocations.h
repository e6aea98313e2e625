// SPDX-License-Identifier: Apache-2.0
// Which certificates are good, followed from the store: asked at every call, and by streams that
// must end when theirs is not good any more. Also notes when a renewed certificate is seen for the
// first time, which ends those before it. Owns a thread, which sees a revocation a moment after it
// was written, by whichever controller. Any thread may call; the store outlives it.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "controlplane/store/store.h"
#include "rocegw/controlplane/v1/records.pb.h"

namespace rocegw::identity {

// Of a caller, as its certificate says.
struct PeerCertificate {
  std::string path;    // "node/G"
  std::string serial;  // FactsOf
};

class Revocations {
 public:
  // Reads everything before it returns.
  static StatusOr<std::unique_ptr<Revocations>> Start(store::Store& store);
  ~Revocations();
  Revocations(const Revocations&) = delete;
  Revocations& operator=(const Revocations&) = delete;

  // To be asked whenever it is used.
  bool IsGood(const PeerCertificate& certificate);

  // Ends with its object, whose destruction waits for a call that is running on another thread; it
  // may be destroyed within the call. It may outlive the Revocations.
  class Listening {
   public:
    ~Listening();
    Listening(const Listening&) = delete;
    Listening& operator=(const Listening&) = delete;

   private:
    friend class Revocations;
    struct Ear;
    struct Ears;
    Listening(std::shared_ptr<Ears> ears, std::shared_ptr<Ear> ear)
        : ears_(std::move(ears)), ear_(std::move(ear)) {}
    std::shared_ptr<Ears> ears_;
    std::shared_ptr<Ear> ear_;
  };
  // Calls `ended` once when the certificate is not good any more: at once, within Listen, when it
  // is not now; else on our thread. It must be quick and may call anything of gRPC.
  [[nodiscard]] std::unique_ptr<Listening> Listen(PeerCertificate certificate,
                                                  std::function<void()> ended);

  // OkStatus while it follows the store; else why it does not, at the moment.
  Status status() const;

 private:
  explicit Revocations(store::Store& store);
  Status Load();
  void Run();
  void Apply(const store::Changes& changes);
  void Put(const store::Entry& entry);
  bool IsGoodLocked(const PeerCertificate& certificate) const;
  // Ends what is not good any more.
  void TellEnded();
  void NoteFirstUse(const PeerCertificate& certificate);

  struct Known {
    store::Entry entry;
    controlplane::v1::CertificateRecord record;
  };

  store::Store& store_;
  mutable std::mutex mutex_;
  std::condition_variable stop_;
  std::map<std::string, Known> known_;  // by path
  std::set<std::string> noting_;        // serials whose first use is being written
  store::Revision revision_ = 0;
  Status status_;
  std::shared_ptr<Listening::Ears> ears_;
  std::unique_ptr<store::BlockingWatch> watch_;
  bool stopping_ = false;
  size_t writes_ = 0;  // that have not been answered
  std::thread thread_;
};

}  // namespace rocegw::identity
