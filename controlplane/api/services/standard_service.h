// SPDX-License-Identifier: Apache-2.0
// Standard methods of one kind of object on the callback API: admission, plan, transaction, answer.
// Handlers start the work and return; answers are finished on the thread that has the result. The
// services pass their calls here. gRPC's threads.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "controlplane/api/calls/admission.h"
#include "controlplane/api/calls/call.h"
#include "controlplane/api/calls/page_token.h"
#include "controlplane/api/calls/watch_reactor.h"
#include "controlplane/api/writes/standard_methods.h"
#include "controlplane/api/writes/writer.h"
#include "controlplane/model/joined.h"
#include "controlplane/model/label_selector.h"

namespace rocegw::api {

// Shared by all services; outlives them.
struct Backend {
  store::Store& store;
  sync::FleetFollower& follower;
  Writer& writer;
  // Usage of pools; nullptr: not available.
  const sync::UsageBook* usage = nullptr;
};

// Combines two entries of the store to an object; without a status: nullptr.
template <typename Object>
void Join(const store::Entry& intent, const store::Entry* status, Object& out) {
  (void)model::ReadIntent(intent.value, model::NameOfKey(intent.key).Text(), intent.mod_revision,
                          out);
  if (status != nullptr) model::ReadStatus(status->value, out);
}

template <typename Object>
class StandardService {
 public:
  explicit StandardService(const Backend& backend) : backend_(backend) {}

  template <typename Request>
  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* context, const Request& request,
                                Object* response) {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    Admitted admitted;
    if (auto error = Admit(*context, CallKind::kUnary, request, backend_.follower, admitted)) {
      return Refuse(reactor, *error);
    }
    const auto name = model::NameOf(request.name());
    store::Transaction read;
    read.then = {store::Operation::Get(model::KeyOf(model::Part::kIntent, name)),
                 store::Operation::Get(model::KeyOf(model::Part::kStatus, name))};
    backend_.store.TxnAsync(std::move(read), [this, reactor, response, text = request.name()](
                                                 const StatusOr<store::TransactionResult>& result) {
      if (!result.ok()) return (void)Refuse(reactor, FromStore(result.status()));
      const auto& rows = result.value().results;
      if (!rows[0].entry.has_value()) return (void)Refuse(reactor, NotFound(text));
      Join(*rows[0].entry, rows[1].entry.has_value() ? &*rows[1].entry : nullptr, *response);
      WorkOut(*response);
      reactor->Finish(grpc::Status::OK);
    });
    return reactor;
  }

  // `parent`: id of a tenant, "-" for all; `add` adds an object to the response.
  template <typename Request, typename Response>
  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context, const Request& request,
                                 model::Collection collection, const std::string& parent,
                                 Response* response, std::function<Object*()> add) {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    auto page = std::make_shared<Page>();
    if (auto error =
            Admit(*context, CallKind::kUnary, request, backend_.follower, page->admitted)) {
      return Refuse(reactor, *error);
    }
    const auto selector = model::LabelSelector::Parse(request.label_selector());
    if (!selector.has_value()) {
      return Refuse(reactor, BadSelector());
    }
    page->selector = *selector;
    page->filter = parent + "\n" + request.label_selector();
    const auto position = ReadPageToken(request.page_token(), page->filter);
    if (!position.has_value()) {
      return Refuse(reactor,
                    InvalidArgument({{"page_token", "is not one that this list returned"}}));
    }
    const std::string below = parent == model::kAny ? std::string() : parent;
    store::RangeRequest read{
        .range = store::KeyRange::Prefix(model::KeyPrefix(model::Part::kIntent, collection, below)),
        .revision = position->revision,
        .limit = EffectivePageSize(request.page_size())};
    if (!position->last_key.empty()) read.range = read.range.After(position->last_key);
    backend_.store.RangeAsync(
        std::move(read), [this, reactor, response, page,
                          add = std::move(add)](StatusOr<store::RangeResult> intents) {
          if (!intents.ok()) return (void)Refuse(reactor, FromStore(intents.status()));
          response->set_revision(intents->revision);
          if (intents->more) {
            response->set_next_page_token(
                MakePageToken({intents->revision, intents->entries.back().key}, page->filter));
          }
          page->intents = std::move(intents->entries);
          if (page->intents.empty()) return reactor->Finish(grpc::Status::OK);
          AddStatuses(reactor, page, response->revision(), add);
        });
    return reactor;
  }

  // Like List. Responses have revision, deleted and synced.
  template <typename Response, typename Request>
  grpc::ServerWriteReactor<Response>* Watch(grpc::CallbackServerContext* context,
                                            const Request& request, model::Collection collection,
                                            const std::string& parent,
                                            typename WatchReactor<Object, Response>::Add add) {
    Admitted admitted;
    if (auto error = Admit(*context, CallKind::kStream, request, backend_.follower, admitted)) {
      return new RefusedWatch<Response>(*error);
    }
    const auto selector = model::LabelSelector::Parse(request.label_selector());
    if (!selector.has_value()) return new RefusedWatch<Response>(BadSelector());
    WatchSubject subject{.collection = collection,
                         .parent = parent == model::kAny ? std::string() : parent,
                         .selector = *selector,
                         .tenants = admitted.tenants};
    auto still_may = [context, request, tenants = admitted.tenants](const auto& view) {
      const auto decision = model::Decide(CallerOf(*context, view), MethodOf(request), request);
      return decision.allowed && decision.tenants == tenants;
    };
    auto* const reactor =
        new WatchReactor<Object, Response>(backend_.follower, backend_.usage, std::move(subject),
                                           std::move(add), std::move(still_may));
    // The first state includes all writes acknowledged before, by any controller.
    backend_.follower.WhenNewest(
        [reactor, start = request.start_revision()](const auto&) { reactor->Start(start); });
    return reactor;
  }

  template <typename Request>
  grpc::ServerUnaryReactor* Create(grpc::CallbackServerContext* context, const Request& request,
                                   const Object& wanted, Object* response) {
    return Write(context, request, wanted.meta().etag(), response,
                 [context, wanted, birth = NewBirth()](const sync::Fleet& fleet) {
                   return PlanCreate(fleet, CallerOf(*context, fleet.view), wanted, birth);
                 });
  }

  template <typename Request>
  grpc::ServerUnaryReactor* Update(grpc::CallbackServerContext* context, const Request& request,
                                   const Object& wanted, Object* response) {
    return Write(context, request, wanted.meta().etag(), response,
                 [context, wanted, mask = request.update_mask(), missing = request.allow_missing(),
                  birth = NewBirth()](const sync::Fleet& fleet) {
                   return PlanUpdate(fleet, CallerOf(*context, fleet.view), wanted, mask, missing,
                                     birth);
                 });
  }

  template <typename Request>
  grpc::ServerUnaryReactor* Delete(grpc::CallbackServerContext* context, const Request& request) {
    return Write(context, request, request.etag(), nullptr,
                 [name = request.name(), etag = request.etag()](const sync::Fleet& fleet) {
                   return PlanDelete<Object>(fleet, name, etag);
                 });
  }

  // Writes an object in another way. response == nullptr: a deletion, whose response is empty.
  template <typename Request>
  grpc::ServerUnaryReactor* Write(grpc::CallbackServerContext* context, const Request& request,
                                  const std::string& etag, Object* response,
                                  Writer::Planner&& plan) {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    Admitted admitted;
    if (auto error = Admit(*context, CallKind::kUnary, request, backend_.follower, admitted)) {
      return Refuse(reactor, *error);
    }
    bool validated = false;
    if constexpr (requires { request.validate_only(); }) validated = request.validate_only();
    const auto answer = [reactor, response, validated](const WrittenOrError& outcome) {
      if (const auto* error = std::get_if<ApiError>(&outcome)) return (void)Refuse(reactor, *error);
      const auto& written = std::get<Written>(outcome);
      if (response != nullptr) {
        response->ParseFromString(written.intent);
        if (!validated) response->mutable_meta()->set_etag(model::EtagOf(written.revision));
      }
      reactor->Finish(grpc::Status::OK);
    };
    const store::Revision at_least = model::RevisionOfEtag(etag).value_or(0);
    if (validated) {
      backend_.writer.Validate(at_least, std::move(plan), answer);
    } else {
      backend_.writer.Write(CallOf(admitted, request, etag), at_least, std::move(plan), answer);
    }
    return reactor;
  }

 private:
  static ApiError BadSelector() {
    return InvalidArgument(
        {{"label_selector", "is not understood: key=value, key!=value, key, !key"}});
  }

  struct Page {
    Admitted admitted;
    model::LabelSelector selector;
    std::string filter;
    std::vector<store::Entry> intents;
  };

  static grpc::ServerUnaryReactor* Refuse(grpc::ServerUnaryReactor* reactor,
                                          const ApiError& error) {
    reactor->Finish(ToStatus(error));
    return reactor;
  }

  // Adds the statuses of a page's objects at the same revision.
  void AddStatuses(grpc::ServerUnaryReactor* reactor, const std::shared_ptr<Page>& page,
                   store::Revision revision, std::function<Object*()> add) {
    const auto status_key = [](const store::Entry& intent) {
      return model::KeyOf(model::Part::kStatus, model::NameOfKey(intent.key));
    };
    store::RangeRequest read{.revision = revision};
    read.range.begin = status_key(page->intents.front());
    read.range.end = status_key(page->intents.back()) + '\0';
    backend_.store.RangeAsync(std::move(read), [=, this, add = std::move(add)](
                                                   const StatusOr<store::RangeResult>& statuses) {
      if (!statuses.ok()) return (void)Refuse(reactor, FromStore(statuses.status()));
      auto status = statuses.value().entries.begin();
      const auto end = statuses.value().entries.end();
      for (const store::Entry& intent : page->intents) {
        const std::string key = status_key(intent);
        while (status != end && status->key < key) ++status;
        Object object;
        Join(intent, status != end && status->key == key ? &*status : nullptr, object);
        if (IsVisible(page->admitted, object) && page->selector.Matches(object.meta().labels())) {
          WorkOut(object);
          add()->Swap(&object);
        }
      }
      reactor->Finish(grpc::Status::OK);
    });
  }

  void WorkOut(Object& object) const {
    backend_.follower.Read(
        [&](const sync::Fleet& fleet) { WorkOutStatus(fleet, backend_.usage, object); });
  }

  static bool IsVisible(const Admitted& admitted, const Object& object) {
    if (admitted.tenants.empty()) return true;
    const std::string tenant = model::NameOf(object.name()).Tenant();
    return std::ranges::count(admitted.tenants, tenant) != 0;
  }

  const Backend& backend_;
};

}  // namespace rocegw::api
