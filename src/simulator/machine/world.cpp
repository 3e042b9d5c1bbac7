#include "simulator/machine/world.h"

#include <algorithm>
#include <utility>

namespace tilewright::simulator {

World::World(const MachineOptions& options, MachineReport& report)
    : report(report),
      log(report, options.stop_at_first),
      random(options.search == Search::delays ? 0 : options.seed),
      recorder(options.recorder),
      schedule(options.search, options.seed),
      options_(options) {}

Launch& World::launch(const PreparedKernel& kernel, const Arguments& arguments, LaunchPlace place) {
  launches_.push_back(
      std::make_unique<Launch>(*this, kernel, arguments, options_, std::move(place)));
  active_.push_back(launches_.back().get());
  if (recorder) recorder->begin(*active_.back());
  return *active_.back();
}

std::uint32_t World::add_cluster(const Launch& launch) {
  launch_of_cluster_.push_back(&launch);
  return static_cast<std::uint32_t>(launch_of_cluster_.size() - 1);
}

void World::count() const {
  report.choices = schedule.choices();
  for (const auto& launch : launches_) launch->count_instructions();
}

bool World::has_place(const Launch& launch) const {
  // Whole clusters, and one of them however few places there are.
  const std::int64_t size = launch.kernel.cluster;
  const std::int64_t places =
      std::max<std::int64_t>((options_.resident + size - 1) / size, 1) * size;
  std::int64_t taken = 0;
  for (const Launch* other : active_) {
    if (other->place.rank == launch.place.rank) taken += other->live_ctas();
  }
  return taken + size <= places;
}

void World::settle() {
  for (Launch* launch : active_) {
    if (launch->can_retire()) launch->retire();
  }
  std::vector<Launch*> waiting;
  while (true) {
    waiting.clear();
    for (Launch* launch : active_) {
      if (!launch->all_started() && has_place(*launch)) waiting.push_back(launch);
    }
    if (waiting.empty()) break;
    waiting[waiting.size() == 1 ? 0 : random.below(waiting.size())]->start_next();
  }
  active_.erase(std::remove_if(active_.begin(), active_.end(),
                               [](const Launch* launch) { return launch->is_over(); }),
                active_.end());
}

void World::run() {
  while (true) {
    settle();
    if (active_.empty()) return;
    do {
      if (runnable.empty() && events.empty()) {
        log.add(deadlock(*this));
        return;
      }
      step();
    } while (!stepped_->can_retire());
  }
}

void World::step() {
  const Schedule::Choice choice = schedule.next(runnable, events);
  Warp& warp = choice.event ? *events[choice.index].issuer : *runnable[choice.index];
  Launch& launch = *warp.cta->cluster->launch;
  stepped_ = &launch;
  if (choice.event) {
    launch.happen(choice.index);
  } else {
    launch.run_warp(warp);
  }
}

}  // namespace tilewright::simulator
