// SPDX-License-Identifier: Apache-2.0
// Validity of certificates, followed from the store: checked at every call, and by streams that
// must end when their certificate becomes invalid. Also records the first use of a renewed
// certificate, which ends those before it. Owns a thread, which learns of a revocation by any
// controller within moments. Any thread may call; the store outlives it.
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

// Caller's certificate.
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

  // Call at each use of the certificate.
  bool IsGood(const PeerCertificate& certificate);

  // Registration that ends with its object, whose destructor waits for a call on another thread; it
  // may be destroyed within the call, and may outlive the Revocations.
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
  // Calls `ended` once when the certificate becomes invalid: within Listen if it is invalid now;
  // else on this object's thread. It must be quick and may call gRPC.
  [[nodiscard]] std::unique_ptr<Listening> Listen(PeerCertificate certificate,
                                                  std::function<void()> ended);

  // Returns OkStatus while the store is followed; else why it is not, at present.
  Status status() const;

 private:
  explicit Revocations(store::Store& store);
  Status Load();
  void Run();
  void Apply(const store::Changes& changes);
  void Put(const store::Entry& entry);
  bool IsGoodLocked(const PeerCertificate& certificate) const;
  // Notifies the listeners of invalid certificates.
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
  size_t writes_ = 0;  // writes without an answer
  std::thread thread_;
};

}  // namespace rocegw::identity
