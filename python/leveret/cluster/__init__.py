"""Tasks and calls on more than one computer; Cluster is in leveret itself."""

from .array import ClusterArray as ClusterArray
from .cluster import Cluster as Cluster
from .ticket import ClusterTicket as ClusterTicket
from .ticket import Progress as Progress

__all__ = ["Cluster", "ClusterArray", "ClusterTicket", "Progress"]
