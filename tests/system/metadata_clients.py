"""Run inside a guest: unmodified monitoring libraries read the instance metadata, and print it as JSON."""

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any


def newrelic() -> Any:
    from newrelic.common.utilization import AzureUtilization

    return AzureUtilization.detect()


def elastic() -> Any:
    from elasticapm.utils.cloud import azure_metadata

    return azure_metadata()


def opentelemetry_detector() -> Any:
    from opentelemetry.resource.detector.azure.vm import AzureVMResourceDetector

    return dict(AzureVMResourceDetector().detect().attributes)


def azure_monitor() -> Any:
    from azure.monitor.opentelemetry.exporter.statsbeat._statsbeat_metrics import _StatsbeatMetrics
    from opentelemetry.metrics import CallbackOptions
    from opentelemetry.sdk.metrics import MeterProvider

    key = "00000000-0000-0000-0000-000000000000"
    beats = _StatsbeatMetrics(MeterProvider(), key, "https://example.invalid", True, 1, False)
    (attached,) = beats._get_attach_metric(CallbackOptions())
    return {**beats._vm_data, **attached.attributes} if beats._vm_data else None


def cloud_detect() -> Any:
    from cloud_detect.providers import AzureProvider

    return asyncio.run(AzureProvider().check_metadata_server())


CLIENTS: Mapping[str, Callable[[], Any]] = {
    "newrelic": newrelic,
    "elastic-apm": elastic,
    "opentelemetry-resource-detector-azure": opentelemetry_detector,
    "azure-monitor-opentelemetry-exporter": azure_monitor,
    "cloud-detect": cloud_detect,
}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(CLIENTS[sys.argv[1]]()))
