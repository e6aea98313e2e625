// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/services/audit_service.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controlplane/api/calls/unary_call.h"
#include "controlplane/audit/chain.h"
#include "controlplane/audit/sealer.h"
#include "controlplane/model/stored.h"
#include "controlplane/store/pages.h"

namespace rocegw::api {
namespace {

constexpr size_t kScanPage = 1000;
// Records that one call examines; the next page continues there, even if none matched.
constexpr size_t kMostScanned = 20 * kScanPage;

struct Listing {
  std::string filter;
  std::string resource;
  size_t wanted = 0;
  size_t scanned = 0;
  std::string last_key;
  bool more = false;
};

// Returns false if the page is full.
bool Take(const store::RangeResult& page, Listing& listing,
          admin::v1::ListRecordsResponse& response) {
  for (const store::Entry& entry : page.entries) {
    if (static_cast<size_t>(response.records_size()) == listing.wanted ||
        listing.scanned == kMostScanned) {
      listing.more = true;
      return false;
    }
    ++listing.scanned;
    listing.last_key = entry.key;
    admin::v1::AuditRecord record;
    if (!record.ParseFromString(entry.value)) record.set_request("(not readable)");
    if (!listing.resource.empty() && record.resource() != listing.resource) continue;
    record.set_revision(entry.mod_revision);
    response.add_records()->Swap(&record);
  }
  return true;
}

struct Verifying {
  std::vector<controlplane::v1::AuditSeal> seals;
  std::vector<audit::Digested> records;
};

}  // namespace

grpc::ServerUnaryReactor* AuditService::ListRecords(grpc::CallbackServerContext* context,
                                                    const admin::v1::ListRecordsRequest* request,
                                                    admin::v1::ListRecordsResponse* response) {
  const auto serve = [&](grpc::ServerUnaryReactor* reactor, const Admitted&) {
    auto listing = std::make_shared<Listing>();
    listing->resource = request->resource();
    listing->filter = request->resource() + "\n" + request->since().SerializeAsString();
    listing->wanted = EffectivePageSize(request->page_size());
    const auto position = ReadPageToken(request->page_token(), listing->filter);
    if (!position.has_value()) {
      return reactor->Finish(
          ToStatus(InvalidArgument({{"page_token", "is not one that this list returned"}})));
    }
    store::RangeRequest read{.range = store::KeyRange::Prefix(model::kAuditPrefix),
                             .revision = position->revision,
                             .limit = kScanPage};
    if (request->has_since()) read.range.begin = model::AuditKeyFrom(request->since());
    if (!position->last_key.empty()) read.range = read.range.After(position->last_key);
    store::EachPage(
        backend_.store, std::move(read),
        [listing, response](const store::RangeResult& page) {
          return Take(page, *listing, *response);
        },
        [listing, reactor, response](const StatusOr<store::Revision>& revision) {
          if (!revision.ok()) return reactor->Finish(ToStatus(FromStore(revision.status())));
          if (listing->more) {
            response->set_next_page_token(
                MakePageToken({revision.value(), listing->last_key}, listing->filter));
          }
          reactor->Finish(grpc::Status::OK);
        });
  };
  return WhenAdmitted(*context, *request, backend_.follower, serve);
}

grpc::ServerUnaryReactor* AuditService::Verify(grpc::CallbackServerContext* context,
                                               const admin::v1::VerifyRequest* request,
                                               admin::v1::VerifyResponse* response) {
  const auto serve = [&](grpc::ServerUnaryReactor* reactor, const Admitted&) {
    auto found = std::make_shared<Verifying>();
    const auto take_seals = [found](const store::RangeResult& page) {
      for (const store::Entry& entry : page.entries) {
        // An unreadable seal cannot continue the chain.
        if (!found->seals.emplace_back().ParseFromString(entry.value)) found->seals.back().Clear();
      }
      return true;
    };
    const auto take_records = [found](const store::RangeResult& page) {
      for (const store::Entry& entry : page.entries)
        found->records.push_back(audit::DigestOf(entry));
      return true;
    };
    const auto answer = [found, reactor, response,
                         head = request->known_head()](const StatusOr<store::Revision>& revision) {
      if (!revision.ok()) return reactor->Finish(ToStatus(FromStore(revision.status())));
      const audit::Verdict verdict = audit::Verify(found->seals, std::move(found->records), head);
      response->set_records(verdict.records);
      response->set_unsealed(verdict.unsealed);
      response->set_intact(verdict.problem.empty());
      response->set_revision(verdict.revision);
      response->set_problem(verdict.problem);
      if (!found->seals.empty()) response->set_head(audit::HeadOf(found->seals.back()));
      reactor->Finish(grpc::Status::OK);
    };
    store::RangeRequest seals{.range = store::KeyRange::Prefix(audit::kSealPrefix),
                              .limit = kScanPage};
    store::EachPage(backend_.store, std::move(seals), take_seals,
                    [this, take_records, answer](const StatusOr<store::Revision>& revision) {
                      if (!revision.ok()) return answer(revision);
                      store::RangeRequest records{
                          .range = store::KeyRange::Prefix(model::kAuditPrefix),
                          .revision = revision.value(),
                          .limit = kScanPage};
                      store::EachPage(backend_.store, std::move(records), take_records, answer);
                    });
  };
  return WhenAdmitted(*context, *request, backend_.follower, serve);
}

}  // namespace rocegw::api
